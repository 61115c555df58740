"""Bus bandwidth over algorithm bandwidth says how many ranks took part."""

import pytest
from breakeven.data.plain_csv import read_csv
from breakeven.data.store import RecordError

COLUMNS = "devices=ranks,message_bytes=bytes,latency_s=us/1e6"
FACTORS = {"all-reduce": lambda n: 2 * (n - 1) / n, "all-gather": lambda n: (n - 1) / n, "broadcast": lambda n: 1}


def log(ranks, factor, kind="all-reduce", bandwidth="busbw"):
    """Three messages on ``ranks``, bandwidths printed with two digits (synthetic)."""
    other = bandwidth.replace("busbw", "algbw")
    rows = [f"collective,ranks,bytes,us,{other},{bandwidth}"]
    for size, us in ((1024, 20.0), (2**20, 75.1), (2**28, 3280.0)):
        alg = size / us / 1e3
        rows.append(f"{kind},{ranks},{size},{us},{alg:.2f},{alg * factor:.2f}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_bandwidths_of_the_ranks_that_are_said_are_read(sheet, kind, ranks):
    assert len(read_csv(sheet(log(ranks, FACTORS[kind](ranks), kind)), columns=COLUMNS).visits) == 3


@pytest.mark.parametrize("bandwidth", ["busbw", "BusBW (GB/s)".lower(), "in_place_busbw"])
def test_ranks_that_contradict_the_bandwidths_are_refused(sheet, bandwidth):
    path = sheet(log(16, 1.75, bandwidth=bandwidth))
    # The longest message is printed most precisely.
    message = r"line 4: .* is 1\.75, but all-reduce on 16 ranks gives 1\.875 \(all-reduce on 8 gives that\)"
    with pytest.raises(RecordError, match=message):
        read_csv(path, columns=COLUMNS)
    assert read_csv(path, columns=f"{COLUMNS},note={bandwidth}").visits


def test_a_kind_that_nobody_said_is_told_from_the_bandwidths(sheet):
    path = sheet(log(8, 7 / 8).replace("collective,", "kind,"))
    with pytest.raises(RecordError, match=r"all-gather on 8 gives that.*the kind with collective=NAME"):
        read_csv(path, columns=COLUMNS)


def test_a_bus_bandwidth_of_zero_is_that_of_ranks_that_never_met(sheet):
    with pytest.raises(RecordError, match=r"busbw is 0 on 2 ranks.*each its own rank 0"):
        read_csv(sheet(log(2, 0)), columns=COLUMNS)


def test_small_messages_whose_bandwidths_are_rounded_away_are_not_judged(sheet):
    path = sheet("ranks,bytes,us,algbw,busbw\n8,8,20,0.00,0.00\n8,1024,20,0.05,0.09\n8,2048,20,0.10,0.18\n")
    assert len(read_csv(path, columns=COLUMNS).visits) == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MPI_Allreduce", "all-reduce"),
        ("all_reduce_perf", "all-reduce"),
        ("ncclAllReduce", "all-reduce"),
        ("osu_allgather", "all-gather"),
        ("MPI_Reduce_scatter_block", "reduce-scatter"),
        ("alltoall_perf", "all-to-all"),
        ("MPI_Bcast", "collective-broadcast"),
        ("lax.psum", "all-reduce"),
    ],
)
def test_collectives_are_known_by_the_names_of_other_tools(sheet, name, kind):
    record = read_csv(sheet(f"collective,ranks,bytes,us\n{name},4,8,2\n"), columns=COLUMNS)
    assert record.programs[0].facts.collectives[0].kind == kind
