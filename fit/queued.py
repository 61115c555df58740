"""Calls that are queued: whether their time obeys max(host, devices), as one call at a time obeys the sum.

One call at a time, host and devices work one after the other: T = host + devices. Of several queued calls the host
prepares the next while the devices run the last, and the slower of the two sets the pace: T_queued = max(host,
devices) per call, for calls without end. Both parts are measured, so that the forms are tested without a free number:
the host's part is the time of the null program (queued, where that was measured), the devices' is workload - null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .answer import Estimate, QueuedCall, QueuedLaw
from .intervals import holm, log_t_estimate, p_above, p_below, p_differs
from .launches import LaunchTable

MARGIN = 0.10
"""Largest median relative error of a form that is said to describe the queued calls: the margin of the laws."""

_NO_SUM = "the null program alone takes longer than the workload and a queued null together, so that no sum is positive"

Form = Literal["max", "sum", "neither", "undecided"]


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One cell of the workload by launch, each shape (G,), seconds."""

    num_devices: int
    size: int
    latency: np.ndarray
    queued: np.ndarray
    host: np.ndarray
    devices: np.ndarray

    @property
    def has_sum(self) -> bool:
        """Whether host and devices take time together in every launch, which noise or an odd control may deny."""
        return bool(np.all(self.host + self.devices > 0))

    def by(self, form: str, calls: int) -> np.ndarray:
        """Time per call of ``calls`` queued ones by a form, shape (G,), seconds."""
        return self.host + self.devices if form == "sum" else pipelined(self.host, self.devices, calls)


def pipelined(host: np.ndarray, devices: np.ndarray, calls: int) -> np.ndarray:
    """Time per call of a pipeline of two stages that ``calls`` calls run through.

    Parameters
    ----------
    host, devices : ndarray, seconds
        Of one call.
    calls : int
        k; the first call fills the pipeline, so k calls take min(host, devices) + k max(host, devices).

    Returns
    -------
    ndarray, seconds
        max(host, devices) + min(host, devices) / k: the sum for one call, the maximum for many.
    """
    slower, faster = np.maximum(host, devices), np.minimum(host, devices)
    return slower + np.maximum(faster, 0.0) / calls


def queued_law(
    table: LaunchTable, strategy: str, axis_size: int, *, largest: int | None = None, confidence: float = 0.95
) -> QueuedLaw | None:
    """Set the queued calls against both forms.

    Parameters
    ----------
    table : LaunchTable
    strategy : str
    axis_size : int
        Entry of the plan's size axis whose cells are listed; the forms are judged on every size.
    largest : int, optional
        Largest count of interest.

    Returns
    -------
    QueuedLaw or None
        None where nothing was queued. ``form`` is the one with the smaller error where the launches agree on that
        (t over launches of the difference of mean absolute log errors) and it errs by less than ``MARGIN``.
    """
    plan, calls = table.plan, table.plan.queued_calls
    if table.queued_s is None or not table.replicated or calls < 2:
        return None
    found, sources = [], set()
    for n in table.devices("workload", strategy):
        for size in table.sizes("workload", strategy):
            place = _place(table, strategy, n, size)
            if place is not None and (largest is None or n <= largest):
                found.append(place[0])
                sources.add(place[1])
    if not found:
        return None if _nothing_queued(table, strategy) else QueuedLaw(calls=calls, reason=_no_null(plan.controls))
    host = "null, queued" if sources == {True} else "null, one at a time"
    here = _cells([place for place in found if place.size == axis_size], calls, confidence)
    judged = [place for place in found if place.has_sum]
    if not judged:
        return QueuedLaw(calls=calls, host=host, cells=here, reason=_NO_SUM)
    errors = {form: _errors(judged, form, calls) for form in ("max", "sum")}
    misfit = {form: float(np.median(np.abs(np.expm1(error.mean(axis=1))))) for form, error in errors.items()}
    form, reason = _judge(errors, misfit, 1 - confidence)
    return QueuedLaw(
        calls=calls,
        host=host,
        cells=here,
        num_cells=len(judged),
        misfit_max=misfit["max"],
        misfit_sum=misfit["sum"],
        form=form,
        reason=reason,
    )


def _nothing_queued(table: LaunchTable, strategy: str) -> bool:
    rows = [table.queued(cell) for cell in table.select("workload", strategy)]
    return all(row is None for row in rows)


def _no_null(controls: bool) -> str:
    missing = "the null program was not measured" + ("" if controls else " (--no-controls)")
    return f"{missing}, so the host's part of a call is not known"


def _place(table: LaunchTable, strategy: str, num_devices: int, axis_size: int) -> tuple[_Place, bool] | None:
    """A cell with all its parts, and whether the host's part was measured on queued calls."""
    size = table.plan.global_size(num_devices, axis_size)
    cell = table.find("workload", strategy, num_devices, size)
    control = table.find("null", strategy, num_devices, size)
    if cell is None or control is None:
        return None
    queued, latency, null = table.queued(cell), table.row(cell), table.row(control)
    if queued is None or latency is None or null is None:
        return None
    host = table.queued(control)
    place = _Place(
        num_devices=num_devices,
        size=axis_size,
        latency=latency,
        queued=queued,
        host=null if host is None else host,
        devices=latency - null,
    )
    return place, host is not None


def _errors(places: list[_Place], form: str, calls: int) -> np.ndarray:
    """Log of measured over predicted, shape (places, G)."""
    return np.log([place.queued / place.by(form, calls) for place in places])


def _judge(errors: dict[str, np.ndarray], misfit: dict[str, float], level: float) -> tuple[Form, str]:
    """The closer form, where it is close and the launches agree that it is the closer one."""
    larger = np.abs(errors["sum"]).mean(axis=0) - np.abs(errors["max"]).mean(axis=0)
    better: Form = "max" if larger.mean() > 0 else "sum"
    if misfit[better] > MARGIN:
        than = "longer" if errors[better].mean() > 0 else "shorter"
        return "neither", f"queued calls take {than} than the closer form ({better}) says: {_percent(misfit[better])}"
    p = p_differs(larger)
    if p is None or p >= level:
        return "undecided", "both forms err alike over the launches"
    other = "sum" if better == "max" else "max"
    return better, f"median error {_percent(misfit[better])}, of the other form {_percent(misfit[other])}"


def _cells(places: list[_Place], calls: int, confidence: float) -> tuple[QueuedCall, ...]:
    lead = [place.host - place.devices for place in places]
    above = holm([p_above(values) for values in lead])
    below = holm([p_below(values) for values in lead])
    # Two one-sided questions at half the level each.
    level = (1 - confidence) / 2
    return tuple(
        QueuedCall(
            num_devices=place.num_devices,
            size=place.size,
            latency_s=log_t_estimate(place.latency, confidence),
            queued_s=log_t_estimate(place.queued, confidence),
            host_s=_part(place.host, confidence),
            devices_s=_part(place.devices, confidence),
            ratio_to_max=log_t_estimate(place.queued / place.by("max", calls), confidence),
            limited_by=_slower(host_above, devices_above, level),
        )
        for place, host_above, devices_above in zip(places, above, below, strict=True)
    )


def _part(values: np.ndarray, confidence: float) -> Estimate:
    if np.all(values > 0):
        return log_t_estimate(values, confidence)
    return Estimate(reason="it does not stand out from noise in every launch")


def _slower(
    host_above: float | None, devices_above: float | None, level: float
) -> Literal["host", "devices", "undecided"]:
    if host_above is not None and host_above < level:
        return "host"
    return "devices" if devices_above is not None and devices_above < level else "undecided"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
