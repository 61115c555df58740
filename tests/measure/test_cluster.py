"""Who else was started, from the variables that launchers set."""

import os
import subprocess
import sys

import pytest
from breakeven.measure.processes.cluster import detect, first_host, refuse_several, starter
from breakeven.measure.workload import MeasureError
from hypothesis import given
from hypothesis import strategies as st


def srun(**changes):
    """What srun of Slurm 23 sets for task 2 of 4 on two nodes."""
    found = {
        "SLURM_JOB_ID": "8123",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "2",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_NODELIST": "gpu[03-04]",
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


def open_mpi(**changes):
    """What Open MPI 5.0.11 set for rank 1 of 2 on one host."""
    found = {
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "PMIX_NAMESPACE": "prterun-login-1-4360@1",
        "PMIX_RANK": "1",
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


def hydra(**changes):
    """What MPICH 5.0.2 set for rank 1 of 2 on one host."""
    found = {
        "PMI_RANK": "1",
        "PMI_SIZE": "2",
        "PMI_FD": "11",
        "MPI_LOCALNRANKS": "2",
        "MPI_LOCALRANKID": "1",
        "PMI_HOSTNAME": "vm",
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


def told(**changes):
    found = {"JAX_COORDINATOR_ADDRESS": "job-0.svc:7000", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "2"}
    return {name: value for name, value in (found | changes).items() if value is not None}


def place(cluster):
    return cluster.rank, cluster.processes, cluster.host, cluster.launcher


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (srun(), (2, 4, "gpu03", "srun")),
        (srun(SLURM_STEP_NUM_TASKS=None), (2, 4, "gpu03", "srun")),
        (srun(SLURM_STEP_NODELIST="node1,node2"), (2, 4, "node1", "srun")),
        (open_mpi(), (1, 2, "localhost", "Open MPI")),
        (open_mpi(OMPI_COMM_WORLD_LOCAL_SIZE="1"), (1, 2, "login-1", "Open MPI")),
        (
            open_mpi(
                OMPI_COMM_WORLD_LOCAL_SIZE="1",
                PMIX_NAMESPACE="1531576321",
                OMPI_MCA_orte_hnp_uri="1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
            ),
            (1, 2, "10.96.0.1", "Open MPI"),
        ),
        (
            open_mpi(
                OMPI_COMM_WORLD_LOCAL_SIZE=None,
                PMIX_NAMESPACE=None,
                OMPI_MCA_orte_hnp_uri="1314521088.0;tcp6://[fe80::b9b:ac5d,2620:10d::2]:43370",
            ),
            (1, 2, "fe80::b9b:ac5d", "Open MPI"),
        ),
        (hydra(), (1, 2, "localhost", "MPICH")),
        (told(), (2, 3, "job-0.svc", "variables")),
        (told(JAX_PROCESS_ID=None, JOB_COMPLETION_INDEX="1"), (1, 3, "job-0.svc", "variables")),
        # The user's word on the rank wins: pods of several jobs count by themselves.
        (told(JOB_COMPLETION_INDEX="0"), (2, 3, "job-0.svc", "variables")),
        # mpiexec inside an allocation starts its proxies with srun: the innermost launcher counts.
        (hydra() | srun(SLURM_NTASKS="2", SLURM_STEP_NUM_TASKS="2"), (1, 2, "localhost", "MPICH")),
        # srun that speaks PMI to MPI programs is still srun.
        (srun(PMI_RANK="2", PMI_SIZE="4"), (2, 4, "gpu03", "srun")),
    ],
)
def test_each_launcher_says_rank_size_and_leader(environment, expected):
    assert place(detect(environment)) == expected


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_JOB_ID": "8123", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "gpu[03-04]"},
        # The script of sbatch is task 0 of nothing.
        srun(SLURM_STEP_ID=None, SLURM_PROCID="0", SLURM_STEP_NUM_TASKS=None),
        # Its batch and interactive steps have numbers of their own.
        srun(SLURM_STEP_ID="4294967291", SLURM_PROCID="0"),
        srun(SLURM_STEP_ID="4294967290", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1"),
        # srun -n1 in an allocation of four tasks.
        srun(SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0"),
        open_mpi(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0"),
        hydra(PMI_SIZE="1", PMI_RANK="0"),
        told(JAX_NUM_PROCESSES="1", JAX_PROCESS_ID="0"),
        # An indexed job whose pods have nothing to do with one another.
        {"JOB_COMPLETION_INDEX": "3", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    ],
)
def test_one_process_is_no_cluster(environment):
    assert detect(environment) is None


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (told(JAX_PROCESS_ID=None), "neither JAX_PROCESS_ID nor JOB_COMPLETION_INDEX"),
        (told(JAX_NUM_PROCESSES=None), "but not JAX_NUM_PROCESSES"),
        (told(JAX_COORDINATOR_ADDRESS=None), "JAX_NUM_PROCESSES and JAX_PROCESS_ID are set, but not JAX_COORDINATOR"),
        ({"JAX_PROCESS_ID": "0"}, "JAX_PROCESS_ID is set, but not JAX_COORDINATOR_ADDRESS"),
        (told(JAX_COORDINATOR_ADDRESS="job-0.svc"), "JAX_COORDINATOR_ADDRESS is 'job-0.svc'; write HOST:PORT"),
        (told(JAX_COORDINATOR_ADDRESS="job-0:99999"), "write HOST:PORT"),
        (told(JAX_COORDINATOR_ADDRESS="::1:80"), "write HOST:PORT"),
        (told(JAX_NUM_PROCESSES="three"), "JAX_NUM_PROCESSES is 'three'; it must be a whole number"),
        (told(JAX_NUM_PROCESSES="0"), "JAX_NUM_PROCESSES is '0'"),
        (told(JAX_PROCESS_ID="3"), "JAX_PROCESS_ID is 3, but JAX_NUM_PROCESSES is 3: ranks count from 0 to 2"),
        (told(JAX_PROCESS_ID="-1"), "JAX_PROCESS_ID is '-1'"),
        (told() | open_mpi(), "JAX_NUM_PROCESSES is 3, but OMPI_COMM_WORLD_SIZE of Open MPI is 2"),
        (open_mpi(OMPI_COMM_WORLD_RANK=None), "OMPI_COMM_WORLD_SIZE of Open MPI is set, but not OMPI_COMM_WORLD_RANK"),
        (open_mpi(OMPI_COMM_WORLD_SIZE=None), "OMPI_COMM_WORLD_RANK of Open MPI is set, but not OMPI_COMM_WORLD_SIZE"),
        (
            open_mpi(OMPI_COMM_WORLD_LOCAL_SIZE="1", PMIX_NAMESPACE="77"),
            "Open MPI started 2 processes on several hosts.*--coordinator",
        ),
        (hydra(MPI_LOCALNRANKS="1"), "MPICH started 2 processes on several hosts.*set JAX_COORDINATOR_ADDRESS"),
        (hydra(MPI_LOCALNRANKS=None), "a PMI launcher started 2 processes on several hosts"),
        (hydra(PMI_SIZE=None), "PMI_RANK of MPICH is set, but not PMI_SIZE"),
        (srun(SLURM_PROCID=None), "SLURM_STEP_NUM_TASKS of srun is set, but not SLURM_PROCID"),
        (srun(SLURM_STEP_ID=None), "SLURM_PROCID of srun is 2, but SLURM_STEP_ID is not set"),
        (srun(SLURM_PROCID="4"), "SLURM_PROCID is 4, but SLURM_STEP_NUM_TASKS is 4"),
        (srun(SLURM_STEP_NODELIST=None), "srun started 4 processes on several hosts"),
        (srun(SLURM_STEP_NODELIST=",a"), "SLURM_STEP_NODELIST is ',a', which names no host"),
    ],
)
def test_what_is_half_set_or_contradicts_itself_is_named(environment, message):
    with pytest.raises(MeasureError, match=message):
        detect(environment)


def test_the_users_word_on_the_leader_wins():
    several = hydra(MPI_LOCALNRANKS="1")
    variable = detect(several | {"JAX_COORDINATOR_ADDRESS": "node7:5000"})
    assert (variable.host, variable.port, variable.rank) == ("node7", 5000, 1)
    option = detect(several | {"JAX_COORDINATOR_ADDRESS": "node7:5000"}, coordinator="[fe80::1]:6000")
    assert (option.host, option.port) == ("fe80::1", 6000)
    with pytest.raises(MeasureError, match="--coordinator is 'node7'; write HOST:PORT"):
        detect(several, coordinator="node7")
    with pytest.raises(MeasureError, match="nothing says how many there are"):
        detect({}, coordinator="node7:5000")


def test_the_option_stands_for_the_variable():
    found = detect(told(JAX_COORDINATOR_ADDRESS=None), coordinator="node7:5000")
    assert place(found) == (2, 3, "node7", "variables")
    assert found.port == 5000
    with pytest.raises(MeasureError, match="--coordinator is given, but not JAX_NUM_PROCESSES; set"):
        detect({"JAX_PROCESS_ID": "0"}, coordinator="node7:5000")
    with pytest.raises(MeasureError, match="JAX_NUM_PROCESSES is set, but neither JAX_PROCESS_ID nor"):
        detect({"JAX_NUM_PROCESSES": "2"}, coordinator="node7:5000")


@pytest.mark.parametrize("environment", [srun, open_mpi, hydra])
def test_ranks_of_a_job_meet_and_those_of_another_do_not(environment):
    rank = {"srun": "SLURM_PROCID", "open_mpi": "OMPI_COMM_WORLD_RANK", "hydra": "PMI_RANK"}[environment.__name__]
    zero, one = (detect(environment(**{rank: str(number)}), starter=lambda: "77") for number in (0, 1))
    assert zero.leads
    assert not one.leads
    assert (zero.port, zero.key) == (one.port, one.key)
    other = detect(environment(SLURM_STEP_ID="1", PMIX_NAMESPACE="prterun-login-1-9@1"), starter=lambda: "78")
    assert other.key != zero.key
    secret = detect(environment(BREAKEVEN_KEY="a word"), starter=lambda: "77")
    assert secret.key != zero.key
    assert str(zero.key) not in repr(zero)


@given(job=st.integers(1, 2**31), step=st.integers(0, 10_000))
def test_ports_are_none_that_linux_hands_out(job, step):
    assert 61_000 <= detect(srun(SLURM_JOB_ID=str(job), SLURM_STEP_ID=str(step))).port < 2**16


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node001", "node001"),
        ("node001,host2", "node001"),
        ("node[001-0015],host2", "node001"),
        ("node[001,007-015],host2", "node001"),
        ("rack[2-3]-n[04,07-15],login", "rack2-n04"),
        ("r1i0n[3]", "r1i0n3"),
        ("gpu[03-04].cluster.example", "gpu03.cluster.example"),
    ],
)
def test_the_first_host_of_a_list(nodes, first):
    assert first_host(nodes) == first


def test_processes_of_one_parent_name_the_same_starter():
    command = [sys.executable, "-c", "from breakeven.measure.processes.cluster import starter; print(starter())"]
    said = {subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)}
    assert said == {str(os.getpid())}
    assert starter() != str(os.getpid())


def test_ranks_join_without_jax():
    code = (
        "import sys; from breakeven.measure.processes import cluster, follower, remote; sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-P", "-c", code]).returncode == 0


def test_a_program_that_measures_by_itself_is_refused_under_a_launcher(monkeypatch):
    refuse_several({})
    with pytest.raises(MeasureError, match=r"srun started 4 processes of this program.*use the command line"):
        refuse_several(srun())
    from breakeven import study

    for name, value in told().items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MeasureError, match="variables started 3 processes"):
        study.run("mean-all", sizes_per_device=[8])
