"""How far the work of a control without communication may differ from its workload's: by the communication's own part.

The reduction of an all-reduce makes at most one operation a byte of its message; a collective reads and writes its
message once each, and the program around it may copy half of it. Beside that XLA may fuse the two a little differently.
"""

from __future__ import annotations

MARGIN = 0.05
OPERATIONS_PER_MESSAGE_BYTE = 1.0
ACCESSES_PER_MESSAGE_BYTE = 2.5


def same_flops(workload: float, control: float, message_bytes: float) -> bool:
    """Whether two counts of operations differ by no more than the communication of ``message_bytes``."""
    return _within(workload, control, OPERATIONS_PER_MESSAGE_BYTE * message_bytes)


def same_bytes(workload: float, control: float, message_bytes: float) -> bool:
    """Whether two counts of bytes read and written differ by no more than the communication of ``message_bytes``."""
    return _within(workload, control, ACCESSES_PER_MESSAGE_BYTE * message_bytes)


def _within(workload: float, control: float, own: float) -> bool:
    return abs(workload - control) <= MARGIN * workload + own
