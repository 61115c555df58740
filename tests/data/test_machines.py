"""What differs between the surroundings of two launches."""

import pytest
from breakeven.data.machines import LEFT_OUT, described, surroundings_differ
from breakeven.data.schema import Launch, Machine


def launch(*variables, name="a"):
    machines = (Machine(variables=("XLA_FLAGS=--a", *variables)),)
    return Launch(sweep="s", launch=name, started="now", machines=machines)


@pytest.mark.parametrize(
    "variable",
    ["JAX_ENABLE_X64=1", "XLA_PYTHON_CLIENT_ALLOCATOR=platform", "NCCL_ALGO=Ring", "OMP_NUM_THREADS=1"],
)
def test_variables_that_change_what_runs_or_how_are_said(variable):
    name, value = variable.split("=")
    assert described(surroundings_differ(launch(), launch(variable))) == f"{name} (not set and {value})"
    assert described(surroundings_differ(launch(variable), launch(f"{name}=2"))) == f"{name} ({value} and 2)"


@pytest.mark.parametrize(
    "variable",
    [
        *("JAX_COORDINATOR_ADDRESS=h:1", "JAX_PROCESS_ID=3", "JAX_NUM_PROCESSES=2", "JAX_LOCAL_DEVICE_IDS=0"),
        *("JAX_COMPILATION_CACHE_DIR=/a", "JAX_TRACEBACK_FILTERING=off", "CUDA_VISIBLE_DEVICES=1", "NCCL_DEBUG=INFO"),
        *("OMPI_MCA_ess_base_jobid=7", "TPU_WORKER_ID=1", "TF_CPP_MIN_LOG_LEVEL=1", f"NCCL_ALGO={LEFT_OUT}"),
    ],
)
def test_addresses_ids_folders_and_what_is_printed_are_not(variable):
    assert surroundings_differ(launch(), launch(variable)) == []


def test_a_launch_that_names_no_variables_differs_in_none():
    silent = Launch(sweep="s", launch="b", started="now", machines=(Machine(),))
    assert surroundings_differ(launch("JAX_ENABLE_X64=1"), silent) == []
