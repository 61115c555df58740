"""Messages between two devices: what the compiled program holds, and that each message carries what came before."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from breakeven.measure.hlo import parse_collectives, summarize
from breakeven.measure.pairs import ping_pong
from breakeven.measure.workload import MeasureError


@pytest.mark.parametrize(("k", "payload_bytes"), [(1, 4), (2, 64), (8, 1 << 20)])
@pytest.mark.parametrize(("places", "pair"), [(2, (0, 1)), (2, (1, 0)), (4, (1, 3))])
def test_k_messages_and_nothing_else(k: int, payload_bytes: int, places: int, pair: tuple[int, int], mesh_of: Any):
    fn, args = ping_pong(mesh_of(places), pair, k, payload_bytes)
    text = fn.lower(*args).compile().as_text()
    found = parse_collectives(text)
    assert [(c.kind, c.count, c.message_bytes) for c in found] == [("collective-permute", 1, payload_bytes)] * k
    assert not summarize(text).custom_calls
    for way, line in enumerate(line for line in text.splitlines() if "collective-permute(" in line):
        first, second = pair if way % 2 == 0 else pair[::-1]
        assert f"source_target_pairs={{{{{first},{second}}}}}" in line


@pytest.mark.parametrize(("k", "holder"), [(1, 3), (2, 1), (3, 3), (8, 1)])
def test_the_message_ends_where_the_count_says(k: int, holder: int, mesh_of: Any):
    fn, (zeros,) = ping_pong(mesh_of(4), (1, 3), k, 8)
    # Two elements a device; only device 1's may travel.
    start = jax.device_put(np.arange(1.0, 9.0, dtype=np.float32), zeros.sharding)
    expected = np.zeros((4, 2))
    expected[holder] = (3.0, 4.0)
    assert np.asarray(fn(start)).reshape(4, 2).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("pair", "k", "payload", "message"),
    [
        ((1, 1), 2, 4, "a pair is two of the mesh's 4 devices, got 1 and 1"),
        ((0, 4), 2, 4, "a pair is two of the mesh's 4 devices, got 0 and 4"),
        ((0, 1), 0, 4, "k must be at least 1, got 0"),
        ((0, 1), 2, 6, "positive multiple of 4 bytes, got 6"),
        ((0, 1), 2, 0, "positive multiple of 4 bytes, got 0"),
    ],
)
def test_what_cannot_be_sent(pair: tuple[int, int], k: int, payload: int, message: str, mesh_of: Any):
    with pytest.raises(MeasureError, match=message):
        ping_pong(mesh_of(4), pair, k, payload)
