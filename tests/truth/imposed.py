"""What is imposed on the laboratory, and what a call must then cost: the truth that a blind sweep is held against.

gloo's all-reduce sends the n-th part of the message in each of 2(n - 1) steps, and each step costs a round trip, since
the receiver first says that it is ready. It cuts every part in halves, and on n > 2 hosts the second half of a part
travels during the first one's delay: a step of a part that takes about a round trip on the wire costs less than this.
So messages are either short, next to nothing beside a round trip, or so long that what is saved is small beside them.
The chains of collectives that a sweep adds carry the messages of its largest size: short ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from .network import PAYLOAD_SHARE
from .sleeping import LONG_AT, LONG_MESSAGE_BYTES, MESSAGE_BYTES, SECONDS_PER_ITEM

ITEMS_PER_ROUND_TRIP = 1200
SIZES = (2400, 4200, 5400, 6600, 7800, 9000, 10_800, 30_000)
"""The first one has the long messages. One device takes 2 to 25 round trips; two, three and four devices break even
at 4, 6 and 8, between neighbouring sizes."""
FEW_SIZES, FEW_DEVICES = (2400, 4200, 5400, 9000, 10_800), (1, 2, 4)
"""The least that tells all apart: 4 devices take three times the steps of 2."""
SHORT_BYTES = 256
"""64 numbers: a quarter of them, which a chain sends too, still makes two for each of eight devices."""
LONG = 24.0
"""Seconds of a long message on one link, in round trips."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A laboratory with ``devices[-1]`` hosts.

    Attributes
    ----------
    round_trip_s : of an empty message
    bytes_per_s : of each host's link, headers included
    long : seconds of the long messages on one link, in round trips
    own_s : what a call takes beside what is imposed, by count (``bare.excess_s``); nothing unless said
    """

    round_trip_s: float
    bytes_per_s: float
    devices: tuple[int, ...] = (1, 2, 3, 4)
    sizes: tuple[int, ...] = SIZES
    long: float = LONG
    own_s: Mapping[int, float] = field(default_factory=dict)

    @property
    def beta(self) -> float:
        """Seconds per byte of a message."""
        return 1 / (self.bytes_per_s * PAYLOAD_SHARE)

    @property
    def seconds_per_item(self) -> float:
        """Of sleep."""
        return self.round_trip_s / ITEMS_PER_ROUND_TRIP

    @property
    def environment(self) -> Mapping[str, str]:
        """What the workload is told."""
        return {
            SECONDS_PER_ITEM: repr(self.seconds_per_item),
            MESSAGE_BYTES: str(SHORT_BYTES),
            LONG_MESSAGE_BYTES: str(self.long_bytes),
            LONG_AT: str(self.sizes[0]),
        }

    def latency_s(self, num_devices: int, size: float) -> float:
        """One call."""
        message_bytes = self.long_bytes if size == self.sizes[0] else SHORT_BYTES
        sleep_s = size / num_devices * self.seconds_per_item
        return sleep_s + self.all_reduce_s(num_devices, message_bytes) + self.own_s.get(num_devices, 0.0)

    def regret(self, num_devices: int, size: int) -> float:
        """How much longer a call takes than with the best count, as a share."""
        return self.latency_s(num_devices, size) / min(self.latency_s(n, size) for n in self.devices) - 1

    def break_even_size(self, num_devices: int) -> float:
        """Where the sleep that is saved equals what short messages cost, and what the machine adds to them."""
        more_s = self.own_s.get(num_devices, 0.0) - self.own_s.get(1, 0.0)
        return (self.all_reduce_s(num_devices) + more_s) / (1 - 1 / num_devices) / self.seconds_per_item

    @property
    def long_bytes(self) -> int:
        """Of the long messages: whole numbers of 4 bytes."""
        return 4 * math.ceil(self.long * self.round_trip_s * self.bytes_per_s / 4)

    def all_reduce_s(self, num_devices: int, message_bytes: int = SHORT_BYTES) -> float:
        """Steps of a ring, each with a round trip and its part of the message."""
        part = message_bytes / num_devices
        return sum(self.round_trip_s + part * self.beta for _phase in range(2) for _step in range(num_devices - 1))
