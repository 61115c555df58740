/* A switch in user space: TAP devices whose bytes leave at an imposed rate and arrive after an imposed delay.
 *
 *     switch DELAY_NS NS_PER_BYTE NAME...
 *
 * makes one TAP device a name, port 0, 1, ... in that order, prints "ready" and runs until it is ended; the devices go
 * with it. A frame goes to the port that the last byte of its destination's hardware address names, so that hosts need
 * neither ARP nor learning. A host's frames leave it one after the other: L bytes handed over at t have left at
 * max(t, when the frame before had left) + L * NS_PER_BYTE, and arrive DELAY_NS later. Nothing is lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PORTS = 64, LARGEST_FRAME = 1 << 16, AT_ONCE = 16, PRIORITY = 10 };

/* The kernel wakes a process late: before a frame is due, the last stretch is not slept. */
static const int64_t EARLY_NS = 80000;

struct frame {
    struct frame *next;
    int64_t due_ns;
    size_t bytes;
    unsigned char data[];
};

struct port {
    struct frame *first, **last;
    int64_t free_ns;
};

static struct port ports[MOST_PORTS];
static struct pollfd files[MOST_PORTS];
static int num_ports;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int open_device(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (file < 0)
        fail("/dev/net/tun");
    if (strlen(name) >= IFNAMSIZ) {
        errno = ENAMETOOLONG;
        fail(name);
    }
    strcpy(request.ifr_name, name);
    if (ioctl(file, TUNSETIFF, &request) < 0)
        fail(name);
    return file;
}

/* Reads what a host sends; each frame waits for its turn on the wire. */
static void take(int p, int64_t delay_ns, double ns_per_byte)
{
    static unsigned char data[LARGEST_FRAME];
    for (int i = 0; i < AT_ONCE; i++) {
        ssize_t bytes = read(files[p].fd, data, sizeof data);
        if (bytes < 0)
            return;
        struct frame *frame = malloc(sizeof *frame + bytes);
        if (!frame)
            fail("malloc");
        int64_t now = now_ns();
        ports[p].free_ns = (ports[p].free_ns > now ? ports[p].free_ns : now) + (int64_t)(bytes * ns_per_byte);
        *frame = (struct frame){.due_ns = ports[p].free_ns + delay_ns, .bytes = bytes};
        memcpy(frame->data, data, bytes);
        *ports[p].last = frame;
        ports[p].last = &frame->next;
    }
}

/* Hands over the frames that are due; returns when the next one will be, or 0. */
static int64_t deliver(void)
{
    int64_t next = 0;
    for (int p = 0; p < num_ports; p++) {
        struct frame *frame;
        while ((frame = ports[p].first) && frame->due_ns <= now_ns()) {
            int to = frame->bytes > 5 ? frame->data[5] : MOST_PORTS;
            /* Not for a port: what the kernel sends of itself. A host that goes takes its device down first. */
            if (to < num_ports && write(files[to].fd, frame->data, frame->bytes) < 0)
                (void)errno;
            if (!(ports[p].first = frame->next))
                ports[p].last = &ports[p].first;
            free(frame);
        }
        if (frame && (!next || frame->due_ns < next))
            next = frame->due_ns;
    }
    return next;
}

int main(int count, char **words)
{
    if (count < 4 || count - 3 > MOST_PORTS) {
        fprintf(stderr, "usage: switch DELAY_NS NS_PER_BYTE NAME...\n");
        return 2;
    }
    int64_t delay_ns = atoll(words[1]);
    double ns_per_byte = atof(words[2]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    num_ports = count - 3;
    for (int p = 0; p < num_ports; p++) {
        files[p] = (struct pollfd){.fd = open_device(words[p + 3]), .events = POLLIN};
        ports[p].last = &ports[p].first;
    }
    /* The hosts share the cores with the switch, which must not wait for them; where that is forbidden, it does. */
    struct sched_param priority = {.sched_priority = PRIORITY};
    (void)sched_setscheduler(0, SCHED_FIFO, &priority);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t due = deliver(), wait = due ? due - EARLY_NS - now_ns() : 0;
        if (wait < 0)
            wait = 0;
        struct timespec limit = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        if (ppoll(files, num_ports, due ? &limit : NULL, NULL) > 0)
            for (int p = 0; p < num_ports; p++)
                if (files[p].revents & POLLIN)
                    take(p, delay_ns, ns_per_byte);
    }
}
