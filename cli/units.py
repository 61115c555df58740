"""Numbers as people read them: seconds and bytes become µs, ms, MiB, GB/s; a number and its interval share one unit.

Everything here is text from plain values. What is None is never printed as a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..fit.answer import Estimate, Interval, Parameter

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"), (1e-15, "fs"))
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
BYTES = ("B", "bytes")
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit: printed value = value / factor."""

    factor: float
    name: str

    @property
    def suffix(self) -> str:
        """The unit after a number, with its space."""
        return f" {self.name}" if self.name else ""


PERCENT = Scale(0.01, "%")
PLAIN = Scale(1.0, "")
MOST_DIGITS = 6


def time_scale(seconds: float, *, per: str = "") -> Scale:
    """Return the largest time unit in which the value is at least 1."""
    factor, name = next(((f, u) for f, u in _TIMES if abs(seconds) >= 0.9995 * f), _TIMES[-1])
    return Scale(factor, name + per) if seconds else Scale(1e-6, "µs" + per)


def rate_scale(per_second: float, unit: str) -> Scale:
    """Return the decimal unit (``GB/s``, ``M rows/s``) in which the rate is at least 1."""
    factor, prefix = next(((f, u) for f, u in _RATES if abs(per_second) >= 0.9995 * f), _RATES[-1])
    gap = " " if prefix and len(unit) > 1 else ""
    return Scale(factor, f"{prefix}{gap}{unit}/s")


def duration(seconds: float | None) -> str:
    """A plain time with three digits: ``90 µs``, ``1.25 ms``, ``2 min 5 s``."""
    if seconds is None:
        return "unknown"
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    scale = time_scale(seconds)
    return f"{_significant(seconds / scale.factor)}{scale.suffix}"


def byte_count(count: float | None) -> str:
    """``4 B``, ``4 MiB``; exact below 1 KiB, three digits above."""
    if count is None:
        return "unknown"
    for factor, name in _BYTES:
        if count >= factor:
            return f"{_significant(count / factor)} {name}"
    return f"{count:g} B"


def plain(value: float) -> str:
    """Three significant digits, for a table whose unit stands above it."""
    return _significant(value)


def quantity(value: float | None) -> str:
    """A count of flops or elements: ``unknown``, ``20,480``, ``2.15e+09``."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.3g}"


def probability(value: float | None) -> str:
    """A p-value; below 0.001 only that it is."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def frequency(value: float) -> str:
    """A frequency over resamples, in percent."""
    return f"{round(100 * value)} %"


def signed_percent(value: float) -> str:
    """A deviation in tenths of a percent with its sign; 0 has none: ``+1.4 %``, ``0.0 %``."""
    text = f"{100 * value:+.1f}"
    return f"{text.lstrip('+-') if float(text) == 0 else text} %"


def joined(values: Iterable[object], last: str = "and") -> str:
    """``1, 2 and 8``."""
    texts = [str(value) for value in values]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)


def count_set(values: Sequence[int | None]) -> str:
    """A confidence set of counts: ``{2, 4, never}``; None in it is *never*."""
    return "{" + ", ".join("never" if value is None else str(value) for value in values) + "}"


def size_text(size: float, unit: str, *, per_device: bool) -> str:
    """A place on the size axis in words: ``1,024 rows``, ``100 rows per device``, ``64 MiB``."""
    text = byte_count(size) if unit in BYTES else f"{_axis_number(size)} {unit}"
    return f"{text} per device" if per_device else text


def sizes_text(sizes: Sequence[int], unit: str, *, per_device: bool) -> str:
    """Sizes with the unit said once: ``25, 50 and 100 rows per device``; of more than four the ends."""
    *others, last = sizes
    end = size_text(last, unit, per_device=per_device)
    bare = [size_text(size, unit if unit in BYTES else "", per_device=False).strip() for size in others]
    return f"{len(sizes)} sizes from {bare[0]} to {end}" if len(sizes) > 4 else joined([*bare, end])


def time_estimate(value: Estimate) -> str:
    """A time in seconds: ``136 µs [132, 140]``, or ``cannot tell: reason``."""
    return estimate(value, time_scale(_magnitude(value.estimate, value.interval)))


def share_estimate(value: Estimate) -> str:
    """A share: ``68 % [62, 74]``."""
    return estimate(value, PERCENT)


def ratio_estimate(value: Estimate) -> str:
    """A ratio such as a speedup: ``1.72 [1.65, 1.80]``."""
    return estimate(value, PLAIN)


def size_estimate(value: Estimate, unit: str) -> str:
    """A size with its interval, in the workload's unit."""
    return estimate(value, size_scale(_magnitude(value.estimate, value.interval), unit))


def size_piece(piece: Interval, unit: str) -> str:
    """One piece of a confidence set of sizes: ``[1.4, 1.7] MiB``, ``[2,000, ∞) rows``."""
    scale = size_scale(_magnitude(None, piece), unit)
    lower, upper = (end if end is None else end / scale.factor for end in piece)
    left = "(0" if lower is None else f"[{_significant(lower)}"
    right = "∞)" if upper is None else f"{_significant(upper)}]"
    return f"{left}, {right}{scale.suffix}"


def size_scale(size: float, unit: str) -> Scale:
    """The workload's unit; for bytes KiB, MiB, ..."""
    if unit not in BYTES:
        return Scale(1.0, unit)
    return next((Scale(factor, name) for factor, name in _BYTES if size >= factor), Scale(1.0, "B"))


def rate_estimate(value: Estimate, unit: str) -> str:
    """A rate, 1/s: ``12.1 M rows/s [11.8, 12.4]``."""
    return estimate(value, rate_scale(_magnitude(value.estimate, value.interval), unit))


def estimate(value: Estimate, scale: Scale) -> str:
    """An estimate in a given unit, or ``cannot tell: reason``."""
    if value.estimate is None:
        return cannot_tell(value.reason)
    return number(value.estimate, value.interval, scale)


def number(value: float, interval: Interval | None, scale: Scale) -> str:
    """A number and its interval in one unit, rounded by the interval's width."""
    if value == 0 and interval == (0, 0):
        return f"0{scale.suffix}"
    places = decimals(value, interval, scale.factor)
    text = f"{_fixed(value / scale.factor, places)}{scale.suffix}"
    return text if interval is None else f"{text} {_interval(interval, scale, places)}"


def cannot_tell(reason: str | None) -> str:
    """What stands where a number is missing."""
    return f"cannot tell: {reason}" if reason else "cannot tell"


def parameter(value: Parameter, confidence: float) -> str:
    """A physical parameter, or ``not identified: why``; an inverse bandwidth also as GB/s."""
    if value.estimate is None or not value.identified:
        return not_identified(value.reason)
    if value.upper_limit is not None:
        scale = _parameter_scale(value.upper_limit, value.unit)
        most = f"at most {_significant(value.upper_limit / scale.factor)}{scale.suffix}"
        text = f"{most} (one-sided {50 + 50 * confidence:g} %)"
        return f"{text}{_as_bandwidth(value.upper_limit, 'at least', value.unit)}"
    scale = _parameter_scale(_magnitude(value.estimate, value.interval), value.unit)
    text = number(value.estimate, value.interval, scale)
    return f"{text}{_as_bandwidth(value.estimate, '1/beta =', value.unit)}"


def not_identified(reason: str | None) -> str:
    """What stands where a parameter has no number."""
    if reason is None or reason.startswith("not identified"):
        return reason or "not identified"
    return f"not identified: {reason}"


def decimals(value: float, interval: Interval | None, factor: float) -> int:
    """Decimal places at which the interval's half width shows one or two digits.

    Two digits where the half width starts with 1, else one. A value that is surely positive keeps two digits of its own
    under a much wider interval. Never more than ``MOST_DIGITS``: replicates that agree to nine digits are copies, no
    precision. Without an interval: three significant digits, of a share at most hundredths of a percent.
    """
    if interval is None or interval[0] is None or interval[1] is None or interval[1] <= interval[0]:
        places = max(0, 2 - _exponent(value / factor))
        return min(2, places) if factor == PERCENT.factor else places
    half_width = (interval[1] - interval[0]) / 2 / factor
    exponent = _exponent(half_width)
    digits = 2 if half_width / 10.0**exponent < 1.95 else 1
    own = 1 - _exponent(value / factor) if interval[0] > 0 and value < half_width * factor else 0
    most = MOST_DIGITS - 1 - _exponent(max(abs(end) for end in interval) / factor)  # pyright: ignore[reportArgumentType]
    return max(0, min(digits - 1 - exponent, most), own)


def _interval(interval: Interval, scale: Scale, places: int) -> str:
    lower, upper = interval
    if lower is None and upper is None:
        return "(unbounded)"
    left = "(-∞" if lower is None else f"[{_fixed(lower / scale.factor, places)}"
    right = "∞)" if upper is None else f"{_fixed(upper / scale.factor, places)}]"
    return f"{left}, {right}"


def _parameter_scale(value: float, unit: str) -> Scale:
    if unit == "s" or unit.startswith("s/"):
        return time_scale(value, per=unit[1:].replace("/work", " per unit of work"))
    return Scale(1.0, unit if unit != "1" else "")


def _as_bandwidth(seconds_per_byte: float, word: str, unit: str) -> str:
    if unit != "s/B" or seconds_per_byte <= 0:
        return ""
    scale = rate_scale(1 / seconds_per_byte, "B")
    return f"  ({word} {_significant(1 / seconds_per_byte / scale.factor)}{scale.suffix})"


def _magnitude(value: float | None, interval: Interval | None) -> float:
    """What decides the unit: the estimate; the interval's larger end where 0 lies inside it or there is none."""
    ends = [end for end in interval or () if end is not None]
    if value and not (ends and min(ends) <= 0 <= max(ends)):
        return value
    return max((abs(end) for end in ends), default=abs(value or 0.0))


def _axis_number(size: float) -> str:
    return f"{size:,.0f}" if float(size).is_integer() or abs(size) >= 1000 else f"{size:.3g}"


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0


def _fixed(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def _significant(value: float) -> str:
    """Three significant digits, never in powers of ten, no trailing zeros."""
    text = f"{value:,.{max(0, 2 - _exponent(value))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
