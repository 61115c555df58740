"""Answers made by hand, from a cost that needs no fit."""

import pytest
from breakeven.fit.answer import (
    Answer,
    BreakEven,
    BreakEvenCount,
    BreakEvenSize,
    CommunicationBound,
    Crowd,
    Curve,
    Estimate,
    Meaning,
    Optimum,
    Part,
    Prediction,
)

COUNTS = (1, 2, 4, 8)
PARTS = {"dispatch": (0.3, 0.05), "communication": (0.2, 0.04), "compute": (0.5, 0.06)}


def latency(n, size, path="strong", slow=1.0):
    """Seconds: dispatch grows with n, work shrinks with n."""
    work = size if path == "weak" else size / n
    return slow * (20e-6 + 12e-6 * n + 50e-9 * work)


def around(value, width=0.06, interval=True, reason=None):
    """An estimate with an interval of that relative half width."""
    return Estimate(
        estimate=value, interval=(value * (1 - width), value * (1 + width)) if interval else None, reason=reason
    )


def curves(path, sizes, counts, strategies, interval):
    return tuple(
        Curve(
            strategy=name,
            role="workload",
            size=size,
            num_devices=counts,
            latency_s=tuple(around(latency(n, size, path, slow), interval=interval) for n in counts),
        )
        for slow, name in zip((1.0, 1.3, 2.2, 1.7), strategies, strict=False)
        for size in sizes
    )


def prediction(n, size, path, counts, objective, interval, slow):
    """At one count: measured, interpolated or extrapolated."""
    kind = "measured" if n in counts else "interpolated" if n < counts[-1] else "extrapolated"
    width = {"measured": 0.06, "interpolated": 0.1, "extrapolated": 0.3}[kind]
    time, base = latency(n, size, path, slow), latency(counts[0], size, path, slow)
    total = n * size if path == "weak" else size
    units = n if objective == "throughput" else 1
    return Prediction(
        num_devices=n,
        size=size,
        size_per_device=total / n,
        latency_s=around(time, width, interval),
        cost=around(time / units, width, interval),
        speedup=around(base * units / time, width, interval),
        efficiency=around(base / time, width, interval),
        throughput=around(total / time, width, interval),
        kind=kind,
        source="measured" if kind == "measured" else "ring, per-device",
    )


def meaning():
    return Meaning(estimate=None, interval=None, p_above=None, p_below=None, holds="undecided", reason="made by hand")


def break_even(sizes, counts):
    sizes = tuple(
        BreakEvenSize(
            num_devices=n,
            roots=(Estimate(estimate=480.0 * n, interval=(400.0 * n, None if n == counts[-1] else 600.0 * n)),),
            pieces=((400.0 * n, None),),
            helps="above",
            outcome="found",
        )
        for n in counts[1:]
        if len(sizes) > 1
    )
    count = BreakEvenCount(estimate=2, set=(2,), outcome="found")
    return BreakEven(size=1, first=count, last=count, sizes=sizes)


def part(share, half_width, total, interval):
    return Part(
        latency_s=around(share * total, half_width / share, interval),
        share=around(share, half_width / share, interval),
        source="workload - local",
    )


def make(
    *,
    path="strong",
    objective="time",
    sizes=(500, 1000, 2000, 4000, 8000),
    counts=COUNTS,
    max_devices=8,
    strategies=("jit",),
    strategy="jit",
    interval=True,
    parts=PARTS,
    synthetic=False,
    shared=False,
):
    """An Answer whose times follow ``latency``."""
    bound = {name: meaning() for name in ("share", "exceeds_compute", "growth", "no_gain_even_with_free_dispatch")}
    slow = dict(zip(strategies, (1.0, 1.3, 2.2, 1.7), strict=False))[strategy]
    size = sizes[-1]
    admissible = sorted({*range(counts[0], max_devices + 1), *counts})
    optimum = Optimum(
        size=size,
        estimate=4,
        set=(4,),
        win_frequency={4: 1.0},
        within_tolerance=4,
        tolerance=0.05,
        regret={},
        outcome="found",
    )
    return Answer(
        workload="sin-reduce",
        strategy=strategy,
        unit="elements",
        objective=objective,
        path=path,
        reference_devices=counts[0],
        largest_devices=counts[-1],
        devices=counts,
        sizes=sizes,
        size=size,
        confidence=0.95,
        interval_method="Student t over 6 launches" if interval else "replication unknown",
        num_launches=6 if interval else None,
        num_rounds=180 if interval else None,
        visible_devices=8,
        cores=2,
        platform="cpu",
        shared_resource=shared,
        shared_cores=Crowd(devices=8, cores=2) if shared else None,
        synthetic=synthetic,
        verdict="undecided",
        verdict_reason="made by hand",
        confounded_with=(),
        collectives=None,
        growth={},
        growth_range=None,
        growth_step=None,
        causes={
            n: {
                name: part(*shape, latency(n, size, path, slow), interval)
                if shape
                else Part(latency_s=Estimate(reason="no control"), share=Estimate(reason="no control"), source="none")
                for name, shape in parts.items()
            }
            for n in counts
            if parts
        },
        input_transfer=(),
        collective_cost=(),
        communication_bound=CommunicationBound(size=size, num_devices=counts[-1], adjusted=True, **bound),
        optimal_devices=optimum,
        optimal_by_size={size: optimum},
        break_even=break_even(sizes, counts),
        weak_efficiency=(),
        parameters={},
        laws=(),
        predictions=tuple(prediction(n, s, path, counts, objective, interval, slow) for s in sizes for n in admissible),
        curves=curves(path, sizes, counts, strategies, interval),
        warnings=(),
    )


@pytest.fixture
def make_answer():
    """Build an Answer; keyword arguments as in ``make``."""
    return make
