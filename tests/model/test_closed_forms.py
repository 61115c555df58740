"""The ring law against closed forms of where it helps, and these against a scan of the time between whole counts.

One process feeds all n devices and the payload V does not depend on n. With C the compute of one device alone,

    T(n) - T(1) = (n - 1) (D - K / n) + E,  n > 1,    K = C - 2 V beta,  D = dispatch + 2 alpha,

and E all that is paid once when n > 1.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from breakeven.model.cell import Cell
from breakeven.model.law import Law, terms
from breakeven.model.program import Collective, ProgramFacts
from breakeven.model.ring import all_reduce_time
from hypothesis import assume, example, given
from hypothesis import strategies as st

COUNTS = np.arange(1, 200)

ROUNDED_BELOW_ONE = {
    "compute_s": 0.0009498120884030351,
    "dispatch": 8.655693430786095e-06,
    "alpha": 1.280280362830081e-05,
}

microseconds = st.floats(0, 50e-6)
parameters = st.fixed_dictionaries(
    {
        "compute_s": st.floats(0, 5e-3),
        "message_bytes": st.integers(0, 10**6),
        "dispatch": microseconds,
        "alpha": microseconds,
        "beta": st.floats(0, 2e-9),
        "entry": st.floats(0, 2e-3),
        "alpha0": microseconds,
    }
)


@dataclass(frozen=True, kw_only=True)
class AdditiveRing:
    """The three numbers that decide where adding devices helps; all in seconds.

    Attributes
    ----------
    gain : K, what spreading over ever more devices would save; negative when bandwidth dominates
    per_device : D >= 0; once : E >= 0
    """

    gain: float
    per_device: float
    once: float = 0.0

    @classmethod
    def from_parameters(
        cls,
        *,
        compute_s: float,
        message_bytes: float,
        dispatch: float,
        alpha: float,
        beta: float,
        entry: float = 0.0,
        alpha0: float = 0.0,
    ) -> "AdditiveRing":
        """K, D and E of one all-reduce of ``message_bytes`` V and compute C on one device."""
        return cls(gain=compute_s - 2 * message_bytes * beta, per_device=dispatch + 2 * alpha, once=entry + alpha0)

    def growth_s(self, num_devices: float) -> float:
        """T(n) - T(1), seconds; negative where n devices beat one."""
        if num_devices == 1:
            return 0.0
        return (num_devices - 1) * (self.per_device - self.gain / num_devices) + self.once

    @property
    def optimum(self) -> float:
        """Real n at which T is smallest among n > 1: sqrt(K / D); 1 where K <= 0, infinite where D = 0."""
        if self.gain <= 0:
            return 1.0
        return math.inf if self.per_device == 0 else max(1.0, math.sqrt(self.gain / self.per_device))

    @property
    def some_real_count_helps(self) -> bool:
        """Whether T(n) < T(1) for a real n > 1: sqrt K - sqrt D > sqrt E."""
        if self.gain <= 0:
            return False
        return math.sqrt(self.gain) - math.sqrt(self.per_device) > math.sqrt(self.once)

    @property
    def helping_range(self) -> tuple[float, float] | None:
        """The open interval (n-, n+) of real counts above 1 that beat one device; None where there is none."""
        if not self.some_real_count_helps:
            return None
        if self.per_device == 0:
            return self.gain / (self.gain - self.once), math.inf
        total = self.gain + self.per_device - self.once
        root = math.sqrt(max(0.0, total**2 - 4 * self.gain * self.per_device))
        # The smaller root in the form that is free of the cancellation in total - root, and holds for D -> 0.
        return max(1.0, 2 * self.gain / (total + root)), (total + root) / (2 * self.per_device)

    @property
    def helping_counts(self) -> tuple[int, int | None] | None:
        """Smallest and largest integer that beat one device (None at the upper end: all beyond); None: none does."""
        if self.helping_range is None:
            return None
        lower, upper = self.helping_range
        first = math.floor(lower) + 1
        if first >= upper:
            return None
        return first, None if upper == math.inf else math.ceil(upper) - 1


def between(p, counts):
    """T(n) at real n, with an irrelevant constant of 10 us, written out term by term."""
    ring = all_reduce_time(counts, p["message_bytes"], alpha=p["alpha"], beta=p["beta"])
    once = np.where(counts > 1, p["entry"] + p["alpha0"], 0)
    return 10e-6 + p["dispatch"] * counts + p["compute_s"] / counts + ring + once


def by_the_law(p):
    """T(n) at COUNTS as the law has it, of a program whose work is shared out and whose message is not."""
    values = p | {"c0": 10e-6, "floor": 0.0, "gamma": p["compute_s"]}
    rows = [row(int(n), p["message_bytes"]) for n in COUNTS]
    return np.array([sum(values[name] * times for name, times in terms_of.items()) for terms_of in rows])


def row(n, message_bytes):
    reduced = Collective(
        kind="all-reduce",
        count=1,
        operands=1,
        message_bytes=message_bytes,
        operand_bytes=(message_bytes,),
        group_size=None,
    )
    facts = ProgramFacts(flops=1 / n, collectives=(reduced,) if n > 1 else ())
    cell = Cell(role="workload", strategy="jit", num_devices=n, size=1)
    return terms(Law("ring", "per-device"), cell, facts, cores=None)


@given(parameters)
def test_growth_is_the_difference_of_times(p):
    total = by_the_law(p)
    grown = [AdditiveRing.from_parameters(**p).growth_s(int(n)) for n in COUNTS]
    # Differences of times of up to 0.1 s: rounding of 1e-16 relative to them.
    np.testing.assert_allclose(grown, total - total[0], atol=1e-14)


# Without entry n- is exactly 1, and rounding must not put it below.
@example({**dict.fromkeys(("message_bytes", "beta", "entry", "alpha0"), 0), **ROUNDED_BELOW_ONE})
@given(parameters)
def test_helping_counts_are_those_a_scan_finds(p):
    total = by_the_law(p)
    gain = total[0] - total
    # Exact ties are decided by rounding.
    assume(np.all(np.abs(gain[1:]) > 1e-12))
    winners = COUNTS[gain > 0]
    found = AdditiveRing.from_parameters(**p).helping_counts
    if not len(winners):
        assert found is None or found[0] > COUNTS[-1]
    else:
        assert found is not None
        first, last = found
        assert first == winners[0]
        assert np.array_equal(winners, np.arange(first, min(last or math.inf, COUNTS[-1]) + 1))


@given(parameters)
def test_a_real_count_helps_iff_a_fine_scan_finds_one(p):
    form = AdditiveRing.from_parameters(**p)
    scale = max(form.gain, form.per_device, form.once)
    margin = math.sqrt(max(form.gain, 0)) - math.sqrt(form.per_device) - math.sqrt(form.once)
    # A window narrower than the scan's grid may be missed.
    assume(abs(margin) > 0.05 * math.sqrt(scale) and form.per_device > 1e-6 * scale)
    fine = between(p, 1 + np.geomspace(1e-5, 1e5, 4000))
    assert form.some_real_count_helps == bool(np.any(fine < between(p, np.array([1]))[0]))


@given(parameters)
def test_the_optimum_lies_at_the_geometric_mean_of_the_roots(p):
    form = AdditiveRing.from_parameters(**p)
    assume(form.helping_range is not None and form.per_device > 1e-9)
    assert form.helping_range is not None
    lower, upper = form.helping_range
    assert lower * upper == pytest.approx(form.optimum**2, rel=1e-9)
    for end in (lower, upper):
        # T'(n) is at most K + D there, so a root that is right to 1e-9 leaves 1e-9 of that times n.
        assert form.growth_s(end) == pytest.approx(0, abs=1e-8 * (form.gain + form.per_device) * upper)
    near = form.optimum * np.array([0.99, 1.0, 1.01])
    if near[0] > 1:
        assert np.argmin([form.growth_s(n) for n in near]) == 1


@pytest.mark.parametrize(("gain", "first"), [(2.5, 2), (2.0, None), (1.5, None), (9.0, 2)])
def test_without_entry_two_devices_help_iff_gain_is_twice_the_cost(gain, first):
    found = AdditiveRing(gain=gain, per_device=1.0).helping_counts
    assert (found and found[0]) == first
    if found:
        # Helping stops at K / D.
        assert found[1] == math.ceil(gain) - 1


def test_free_devices_help_for_ever_once_entry_is_paid():
    free = AdditiveRing(gain=3.0, per_device=0.0, once=1.0)
    assert free.optimum == math.inf
    assert free.helping_counts == (2, None)
    assert AdditiveRing(gain=1.0, per_device=0.0, once=1.0).helping_range is None


def test_a_gain_below_zero_never_helps():
    bandwidth_bound = AdditiveRing.from_parameters(
        compute_s=1e-3, message_bytes=10**6, dispatch=0.0, alpha=1e-6, beta=1e-9
    )
    assert bandwidth_bound.gain < 0
    assert bandwidth_bound.optimum == 1
    assert bandwidth_bound.helping_counts is None
