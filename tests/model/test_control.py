"""Work of a control against its workload's: equal but for what the communication itself does."""

import pytest
from breakeven.model.control import same_bytes, same_flops


@pytest.mark.parametrize(
    ("same", "control", "message", "expected"),
    [
        (same_flops, 950, 0, True),
        (same_flops, 949, 0, False),
        (same_flops, 1051, 0, False),
        (same_flops, 850, 100, True),
        (same_flops, 849, 100, False),
        (same_bytes, 700, 100, True),
        (same_bytes, 699, 100, False),
    ],
)
def test_a_twentieth_and_the_communications_own(same, control, message, expected):
    assert same(1000, control, message) is expected
