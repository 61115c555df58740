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
    """A physical parameter of the law.

    ``upper_limit``: the interval's upper end, given instead of the interval where that reaches 0.
    ``p_zero``: one-sided p-value of "it is 0", not adjusted for looking at several; None where it was not tested.
    """

    estimate: float | None
    interval: Interval | None
    identified: bool
    unit: str
    upper_limit: float | None = None
    p_zero: float | None = None
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


class Unidentified(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that weigh the same in every cell measured, so that no fit to these cells tells them apart.

    ``words``: why. ``remedy``: the cheapest run that would, None where none that can be offered does; ``command`` its
    command line; ``remedy_cost_s`` its device-seconds, an estimate from the measured times. Data from elsewhere have
    neither.
    """

    parameters: tuple[str, ...]
    causes: tuple[str, ...]
    words: str
    remedy: str | None = None
    command: str | None = None
    remedy_cost_s: float | None = None


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One check of what the statistics assume; ``passed`` is None where it could not be run (``words`` says why).

    ``p`` : adjusted (Holm) over the members of its family. ``where`` : the worst member. ``remedy`` : what to do,
    empty where it passed.
    """

    name: str
    where: str
    statistic: float | None = None
    p: float | None = None
    passed: bool | None
    words: str
    remedy: str = ""


class DispatchBound(msgspec.Struct, frozen=True, kw_only=True):
    """Two meanings of "dispatch bound" at the headline size and the largest count, after Holm over the two.

    ``share``: of the time, against 1/2. ``prevents_gain``: no measured count beats the reference, but with the growth
    of dispatch and entry free some count would.
    """

    size: int
    num_devices: int
    share: Meaning
    prevents_gain: Meaning


class PairedTests(msgspec.Struct, frozen=True, kw_only=True):
    """One difference, or ratio, of times paired by round, by three tests whose replicate is the launch.

    ``positive`` of ``rounds`` differences lie above 0 (ratios above 1). The sign test and the Hodges-Lehmann estimate,
    its interval that of Wilcoxon's signed ranks, take each launch's median; ``t`` its mean. ``agree``: whether all
    three say the same about 0 (1 for a ratio); ``reason`` says how not, or why there is no answer.
    """

    name: str
    unit: Literal["s", "ratio"]
    rounds: int
    positive: int
    launches: int
    sign_p: float | None
    hodges_lehmann: Estimate
    t: Estimate
    agree: bool | None
    reason: str | None = None


class NoDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a count costs the same as the reference within ``margin`` (a share), at the headline size.

    ``ratio``: of the costs. ``p``: of the two one-sided tests, after Holm over the counts. ``no``: the ratio lies
    outside the margin, after Holm as well.
    """

    num_devices: int
    ratio: Estimate
    margin: float
    p: float | None
    equivalent: Literal["yes", "no", "undecided"]
    reason: str | None = None


class LawShare(msgspec.Struct, frozen=True, kw_only=True):
    """Communication's share of the time by the reported law, beside the one measured without a law.

    ``agree``: ``yes`` when equivalent within ``margin`` (of the time), ``no`` when they differ significantly.
    """

    num_devices: int
    size: int
    law: str | None
    by_law: Estimate
    measured: Estimate
    difference: Estimate
    margin: float
    agree: Literal["yes", "no", "undecided"]
    reason: str | None


class DeviceSlope(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a call as a straight line in the device count, at one size; ``straight``: the line describes it.

    ``misfit``: root mean square relative error. ``remark``: what the interval of the slope leaves open.
    """

    size: int
    devices: tuple[int, ...]
    intercept_s: Estimate
    per_device_s: Estimate
    misfit: float
    straight: bool
    remark: str | None = None


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """A border at which the times stop obeying one law, between ``below`` and ``above`` on ``axis``.

    ``axis``: ``count``, ``size`` or ``payload``; ``role``: whether the workload or the chains of collectives showed
    it; ``places``: the curves (sizes, payloads, or counts) that were searched together; ``factor``: measured time
    above over below; ``excess``: time above over what the law below gives there; ``changes``: the term that changes;
    ``p``: of "no border anywhere", corrected for all borders tried.
    """

    axis: Literal["count", "size", "payload"]
    role: Literal["workload", "chain"]
    below: int
    above: int
    places: tuple[int, ...]
    factor: Estimate
    excess: float
    changes: str
    p: float
    reason: str


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Communication hidden behind other work at one cell: local + communication - workload.

    ``fraction``: of the shorter of compute and communication. ``reason``: in words, or why there is no number.
    """

    num_devices: int
    size: int
    hidden_s: Estimate
    fraction: Estimate
    reason: str


class QueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One cell called one at a time and queued, seconds per call, with the two parts that the forms are made of.

    ``ratio_to_max``: measured over what a pipeline of host and devices takes. ``limited_by``: the slower part.
    """

    num_devices: int
    size: int
    latency_s: Estimate
    queued_s: Estimate
    host_s: Estimate
    devices_s: Estimate
    ratio_to_max: Estimate
    limited_by: Literal["host", "devices", "undecided"]


class QueuedLaw(msgspec.Struct, frozen=True, kw_only=True):
    """Which form the time of ``calls`` queued calls has: the maximum of host and devices, or their sum.

    ``host``: where the host's part comes from. ``misfit_max``, ``misfit_sum``: median relative errors over
    ``num_cells`` cells of every size, less those whose parts add up to no time; neither form has a free number.
    ``cells``: those of the headline size.
    """

    calls: int
    host: str | None = None
    cells: tuple[QueuedCall, ...] = ()
    num_cells: int = 0
    misfit_max: float | None = None
    misfit_sum: float | None = None
    form: Literal["max", "sum", "neither", "undecided"] = "undecided"
    reason: str


class Separation(msgspec.Struct, frozen=True, kw_only=True):
    """The count and size at which the laws that may predict differ most: measuring there tells them apart.

    ``difference``: relative, of the two furthest apart (``laws``: the faster and the slower there). ``noise``: of one
    launch, on the log scale. ``reason``: why no count within reach would do.
    """

    laws: tuple[str, str]
    num_devices: int
    size: int
    difference: float
    noise: float | None
    reason: str | None = None


class ScalingNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of other scaling laws, from the physical law ``law`` at the global ``size``.

    ``contention`` and ``coherency``: sigma and kappa of the Universal Scalability Law; ``serial_fraction``: Amdahl's;
    ``isoefficiency``: x in W ~ n^x, the growth of the work that keeps the efficiency at one half.
    """

    law: str | None
    size: int
    contention: Estimate
    coherency: Estimate
    serial_fraction: Estimate
    isoefficiency: Estimate


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of one call goes on the devices, seconds, by a profiler in one launch: nothing was replicated.

    Medians over the traced calls of means over the devices, except ``longest_s``: of the device with the most.

    Attributes
    ----------
    collective_s : all collectives, waiting for the last device included
    quartiles_within_launch_s : of that over the calls of this launch; says nothing about other launches
    waiting_s, exchange_s : its two parts; None where they cannot be told apart
    busy_share : of the traced call's time, in which a device executed anything, waiting included
    slowdown : of the traced calls against those just before (0.29: 29 % longer)
    law_free_s : workload - local, over the launches that measured
    factor : by which that lies outside exchange_s..collective_s; 1 inside; None where that is open
    agree : same order; None where there is nothing to compare
    """

    num_devices: int
    size: int
    calls: int
    collective_s: float | None
    quartiles_within_launch_s: tuple[float, float] | None
    longest_s: float | None
    waiting_s: float | None
    exchange_s: float | None
    busy_share: float | None
    slowdown: float | None
    law_free_s: Estimate
    factor: float | None
    agree: Literal["yes", "no", "undecided"] | None
    reason: str


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Host devices of one node (all, or those in question), and the cores that its processes may use together."""

    devices: int
    cores: int


class NamedWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something around the measurement that makes it mean less than it seems to; ``text`` is among the warnings too.

    ``name``: ``forced-devices``, ``few-cores``, ``throttled``, ``other-load``, ``coarse-clock``, ``drift``,
    ``frequency``, ``clock-jump``, ``suspended`` or ``unlike-machines``; of programs and times that are not
    what they are taken for ``impossible-rate``, ``odd-repeats``, ``first-repeats``, ``not-waited-for``,
    ``unlike-control``, ``slower-control``, ``repeated-work``, ``padding``, ``unlike-strategies``, ``inputs-moved``,
    ``changed-program`` or ``compiled-whole``.
    ``doubts_verdict``: it can change the verdict.
    """

    name: str
    text: str
    doubts_verdict: bool = False


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
    unidentified: tuple[Unidentified, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    dispatch_bound: DispatchBound | None = None
    paired: tuple[PairedTests, ...] = ()
    no_difference: tuple[NoDifference, ...] = ()
    law_share: LawShare | None = None
    slope: DeviceSlope | None = None
    breaks: tuple[Break, ...] = ()
    breaks_not_sought: str | None = None
    overlap: tuple[Overlap, ...] = ()
    separating_devices: Separation | None = None
    scaling_numbers: ScalingNumbers | None = None
    parameters_of: str | None = None
    queued: QueuedLaw | None = None
    traced: tuple[Traced, ...] = ()
    named_warnings: tuple[NamedWarning, ...] = ()
    doubts: tuple[str, ...] = ()
    shared_cores: Crowd | None = None
