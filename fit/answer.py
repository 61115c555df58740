"""What the fits return, and what ``--json`` prints: one object, SI units, the same fields whatever was asked.

What is missing is None, never 0. An interval is [lower, upper] at ``confidence``; an end that the data leave open
is None. ``set`` holds every value the data do not exclude.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ..model.program import Collective

Interval = tuple[float | None, float | None]
Holds = Literal["yes", "no", "undecided", "undefined"]
Outcome = Literal["found", "never", "undecided"]
Verdict = Literal["dispatch", "communication", "compute", "input-transfer", "undecided"]
CAUSES = ("dispatch", "communication", "compute")


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its interval; both None where the data do not determine it (``reason`` says why)."""

    estimate: float | None = None
    interval: Interval | None = None
    reason: str | None = None


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A physical parameter of the law. ``upper_limit``: one-sided 95 %, given instead of an interval at bound 0."""

    estimate: float | None
    interval: Interval | None
    identified: bool
    unit: str
    upper_limit: float | None = None
    reason: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One cause at one point: seconds, share of the call's time, and how it was obtained (``source``)."""

    latency_s: Estimate
    share: Estimate
    source: str


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Growth of the call's time between two counts, and each cause's share of it.

    ``shares`` may exceed 1 when another cause falls. ``undecided`` holds the reason where no shares are given.
    """

    from_devices: int
    to_devices: int
    size: int
    latency_s: Estimate
    shares: dict[str, Estimate] = {}
    undecided: str | None = None


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """One meaning of "communication bound": estimate against its null value.

    ``p_above`` is the p-value of "estimate <= null value" (small: it lies above), ``p_below`` of ">=".
    """

    estimate: float | None
    interval: Interval | None
    p_above: float | None
    p_below: float | None
    holds: Holds
    reason: str


class Meanings(msgspec.Struct, frozen=True, kw_only=True):
    """The four meanings of "communication bound" at one size and one count.

    ``adjusted``: ``holds`` was decided after Holm over the defined meanings (the headline size only).
    """

    size: int
    num_devices: int
    share: Meaning
    exceeds_compute: Meaning
    growth: Meaning
    no_gain_even_with_free_dispatch: Meaning
    adjusted: bool


class CommunicationBound(Meanings, frozen=True, kw_only=True):
    """The meanings at the largest size and count; ``by_size`` holds the other sizes, unadjusted.

    ``rejected_outright``: why the compiled program cannot be communication bound, whatever was measured.
    """

    by_size: dict[int, Meanings] = {}
    rejected_outright: str | None = None


class CollectiveCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of the workload's communication at one cell by up to three routes, side by side."""

    num_devices: int
    size: int
    chain: Estimate
    replay: Estimate
    difference: Estimate
    agree: bool | None
    reason: str | None = None


class Optimum(msgspec.Struct, frozen=True, kw_only=True):
    """The best count: by size on the plan's axis, under the objective."""

    size: int
    estimate: int | None
    set: tuple[int, ...]
    win_frequency: dict[int, float]
    within_tolerance: int | None
    tolerance: float
    regret: dict[int, Estimate]
    outcome: Outcome
    at_upper_end: bool = False
    reason: str | None = None


class BreakEvenCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count at which adding devices starts (``first``) or stops (``last``) to beat the reference.

    ``never`` in the set is spelled None. ``at_least``: the answer lies at the upper end of the admissible counts.
    """

    estimate: int | None
    set: tuple[int | None, ...]
    outcome: Outcome
    at_least: bool = False
    reason: str | None = None


class BreakEvenSize(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, for one count, at which it costs the same as the reference count.

    ``roots`` : each with its estimate and confidence set piece; ``pieces`` : the confidence set, in pieces,
    None for an open end; ``helps`` : ``above``, ``below``, ``window``, ``always``, ``never``, ``undecided``.
    """

    num_devices: int
    roots: tuple[Estimate, ...]
    pieces: tuple[Interval, ...]
    helps: Literal["above", "below", "window", "always", "never", "undecided"]
    outcome: Outcome
    reason: str | None = None


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """Where adding devices helps, against ``reference_devices``."""

    size: int
    first: BreakEvenCount
    last: BreakEvenCount
    sizes: tuple[BreakEvenSize, ...]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Time and cost at one count and size; ``measured``, ``interpolated`` or ``extrapolated``."""

    num_devices: int
    size: int
    size_per_device: float
    latency_s: Estimate
    cost: Estimate
    speedup: Estimate
    efficiency: Estimate
    throughput: Estimate
    kind: Literal["measured", "interpolated", "extrapolated", "refused"]
    source: str


class LawReport(msgspec.Struct, frozen=True, kw_only=True):
    """One law of the menu: how it fits, what it errs by on held-out cells, whether it may predict."""

    name: str
    misfit: float | None
    held_out_size: float | None
    held_out_count: float | None
    baseline_held_out: float | None
    discrepancy: float | None
    judged: bool
    adequate: bool
    kept: bool
    indistinguishable_from: tuple[str, ...] = ()
    reason: str | None = None


class WeakEfficiency(msgspec.Struct, frozen=True, kw_only=True):
    """T(n0, n0 s) / T(n, n s) at one count, and the per-device size at which it reaches 90 %."""

    num_devices: int
    size_per_device: int
    efficiency: Estimate
    size_for_90_percent: Estimate


class InputTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy's unplaced inputs cost: the same program with placed inputs, subtracted."""

    strategy: str
    placed: str
    num_devices: int
    size: int
    latency_s: Estimate
    share: Estimate


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Measured times of one strategy at one size, for figures and tables."""

    strategy: str
    role: str
    size: int
    num_devices: tuple[int, ...]
    latency_s: tuple[Estimate, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the data say about one strategy of one workload."""

    workload: str
    strategy: str
    unit: str
    objective: Literal["time", "throughput"]
    path: Literal["strong", "weak"]
    reference_devices: int
    largest_devices: int
    devices: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int
    confidence: float
    interval_method: str
    num_launches: int | None
    num_rounds: int | None
    visible_devices: int | None
    cores: int | None
    platform: str | None
    shared_resource: bool
    synthetic: bool
    verdict: Verdict
    verdict_reason: str
    confounded_with: tuple[str, ...]
    collectives: tuple[Collective, ...] | None
    growth: dict[str, Estimate]
    growth_range: Growth | None
    growth_step: Growth | None
    causes: dict[int, dict[str, Part]]
    input_transfer: tuple[InputTransfer, ...]
    collective_cost: tuple[CollectiveCost, ...]
    communication_bound: CommunicationBound
    optimal_devices: Optimum
    optimal_by_size: dict[int, Optimum]
    break_even: BreakEven
    weak_efficiency: tuple[WeakEfficiency, ...]
    parameters: dict[str, Parameter]
    laws: tuple[LawReport, ...]
    predictions: tuple[Prediction, ...]
    curves: tuple[Curve, ...]
    warnings: tuple[str, ...]
