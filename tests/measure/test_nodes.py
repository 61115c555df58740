import msgspec
import pytest
from breakeven.data.machines import HASHED
from breakeven.data.schema import Machine
from breakeven.measure.processes.nodes import alias, hidden, node, salt_of, without_folders

FOUND = Machine(
    host="gpu07.cluster.example",
    boot="0b1c",
    affinity=(0, 1),
    variables=(
        "JAX_COORDINATOR_ADDRESS=node1:61234",
        "NCCL_SOCKET_IFNAME=gpu07.cluster.example-ib",
        "OMPI_MCA_initial_wdir=/home/ann/project",
        "TPU_WORKER_HOSTNAMES=a,b",
        "LD_PRELOAD=/home/bob/lib.so libfast.so",
        "XLA_FLAGS=--xla_cpu_x=1 --xla_dump_to=/home/bob/out --xla_y=true",
    ),
)


def test_without_a_salt_a_machine_stays_as_it_is():
    assert hidden(FOUND, None) is FOUND


def test_names_of_hosts_and_folders_are_hidden_and_nothing_else():
    found = hidden(FOUND, "salt")
    assert found.host == alias(FOUND.host, "salt")
    text = msgspec.json.encode(found).decode()
    for word in ("gpu07", "cluster", "node1", "ann", "a,b", "bob", "/"):
        assert word not in text
    assert "XLA_FLAGS=--xla_cpu_x=1 --xla_dump_to=(left out) --xla_y=true" in found.variables
    assert "LD_PRELOAD=(left out) libfast.so" in found.variables
    assert [variable.partition("=")[0] for variable in found.variables] == [
        variable.partition("=")[0] for variable in FOUND.variables
    ]
    assert (found.boot, found.affinity) == (FOUND.boot, FOUND.affinity)


def test_folders_are_hidden_where_the_host_has_no_name():
    found = hidden(msgspec.structs.replace(FOUND, host=None), "salt")
    assert found.host is None
    assert not any("/" in variable for variable in found.variables)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("--a=1 --b", "--a=1 --b"),
        ("", ""),
        ("--to=gs://bucket/x --b=2", "--to=(left out) --b=2"),
        ("/home/x=y/z", "(left out)"),
        ("--a=b=/home/x", "--a=(left out)"),
        ("x/home=y", "(left out)"),
    ],
)
def test_flags_without_folders(text, left):
    assert without_folders(text) == left


def test_aliases_tell_hosts_apart_within_a_sweep_only():
    assert alias("a", "one") == alias("a", "one")
    assert len({alias("a", "one"), alias("b", "one"), alias("a", "two")}) == 3


def test_an_alias_is_recognised_where_launches_are_compared():
    assert HASHED.fullmatch(alias("a", "one"))
    assert not HASHED.fullmatch("host-7")


def test_the_salt_is_the_systems_own_and_the_sweeps(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("4e6f\n")
    first = salt_of("one", tmp_path)
    salt_of.cache_clear()
    assert salt_of("one", tmp_path) == first
    assert salt_of("two", tmp_path) != first
    assert "4e6f" not in first


def test_without_an_identifier_the_salt_is_random_but_one_for_the_process(tmp_path):
    first = salt_of("one", tmp_path)
    assert salt_of("one", tmp_path) == first
    salt_of.cache_clear()
    assert salt_of("one", tmp_path) != first


def test_a_node_is_a_running_system(tmp_path):
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("0b1c\n")
    assert node(tmp_path) == "0b1c"
    assert node(tmp_path / "elsewhere")
