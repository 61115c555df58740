"""``breakeven power [FILE]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, cast

import typer

from . import options, output
from .answering import refuse_one_count

if TYPE_CHECKING:
    from ..fit.planning.sizing import Goal, Power

CAUSES = ("communication", "dispatch", "compute")
LEAST_NOISE = 1e-9
"""A spread below this is none: its square would vanish."""

Pilot = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help="A pilot sweep: a record, a CSV with launches, or data:NAME.", show_default=False
    ),
]
Difference = Annotated[
    str | None,
    typer.Option(metavar="X%", help="Tell a loss of X % from none. The default, with 5 %.", show_default=False),
]
BreakEven = Annotated[
    str | None, typer.Option(metavar="X%", help="Know the break-even size to within X % of it.", show_default=False)
]
Share = Annotated[
    str | None,
    typer.Option(metavar="X%", help="Know a cause's share of the time to within X points.", show_default=False),
]
Cause = Annotated[str, typer.Option("--of", metavar="CAUSE", help="Whose --share: communication, dispatch, compute.")]
At = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Count in question. Default: the largest measured.", show_default=False),
]
Wanted = Annotated[
    float, typer.Option("--power", metavar="P", min=0.05, max=0.999, help="Probability of success to plan for.")
]
LaunchSd = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        min=0.0,
        max=10.0,
        help="Instead of FILE: spread of the log ratio (share) between launches.",
    ),
]
RoundSd = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        min=0.0,
        max=10.0,
        help="Instead of FILE: its spread between rounds of one launch.",
    ),
]
Slope = Annotated[
    float | None,
    typer.Option(
        metavar="B",
        min=-1e3,
        max=1e3,
        help="Instead of FILE, for --break-even: change of the log ratio per unit of log size there.",
    ),
]


def command(
    file: Pilot = None,
    difference: Difference = None,
    break_even: BreakEven = None,
    share: Share = None,
    cause: Cause = "communication",
    at: At = None,
    reference: options.Reference = None,
    size: options.Size = None,
    strategy: options.Strategy = None,
    power: Wanted = 0.8,
    confidence: options.Confidence = 0.95,
    launch_sd: LaunchSd = None,
    round_sd: RoundSd = None,
    slope: Slope = None,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how many launches and rounds it takes to tell a difference.

    \b
    Example:
      breakeven power pilot.jsonl --difference 5% --at 4
      breakeven power pilot.jsonl --break-even 10%
      breakeven power --difference 5% --launch-sd 0.03 --round-sd 0.05

    Or to know the break-even size, or a share, well enough. A pilot of three launches or more shows how much of the
    noise lies between launches, which only more launches reduce, and how much between rounds. Its own uncertainty is
    averaged over. Exit code 1: no design can be named.
    """
    goal, target = _goal(difference, break_even, share)
    options.one_of("--of", cause, CAUSES)
    if file is None:
        found = _from_noise(goal, target, launch_sd, round_sd, slope, power, confidence)
    else:
        if launch_sd is not None or round_sd is not None or slope is not None:
            output.bad_argument("--launch-sd", "the pilot FILE shows the noise: give one or the other.")
        found = _from_pilot(
            file,
            (columns, scaling, where),
            goal=goal,
            target=target,
            wanted=power,
            confidence=confidence,
            at=at,
            reference=reference,
            size=None if size is None else options.size("--size", size),
            strategy=strategy,
            cause=cause,
        )
    if as_json:
        output.emit_json(found)
    else:
        from .render_power import power as text

        output.emit(text(found))
    raise typer.Exit(output.UNDECIDED if found.chosen is None else output.DECIDED)


def _goal(difference: str | None, break_even: str | None, share: str | None) -> tuple[Goal, float]:
    given = [
        (goal, option, text)
        for goal, option, text in (
            ("difference", "--difference", difference),
            ("break-even", "--break-even", break_even),
            ("share", "--share", share),
        )
        if text is not None
    ]
    if len(given) > 1:
        output.bad_argument(given[1][1], f"ask one question at a time, {given[0][1]} or {given[1][1]}.")
    goal, option, text = given[0] if given else ("difference", "--difference", "5%")
    return cast("Goal", goal), fraction(option, text)


def fraction(option: str, text: str) -> float:
    """Read ``5%`` or ``0.05``: above 0 and below 1."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value < 1:
        output.bad_argument(option, f"{text!r} is no share between 0 and 100 %; write 5% or 0.05.")
    return value


def _from_noise(
    goal: Goal,
    target: float,
    launch_sd: float | None,
    round_sd: float | None,
    slope: float | None,
    power: float,
    confidence: float,
) -> Power:
    if launch_sd is None or round_sd is None:
        output.bad_argument("FILE", "give a pilot sweep, or state its noise with --launch-sd and --round-sd.")
    if max(launch_sd, round_sd) < LEAST_NOISE:
        output.bad_argument("--launch-sd", "without any noise one call tells everything; state the noise there is.")
    if goal == "break-even" and not slope:
        output.bad_argument("--slope", "--break-even needs it: how the log ratio changes with the log of the size.")
    from ..fit.planning.sizing import from_noise

    return from_noise(launch_sd, round_sd, goal=goal, target=target, slope=slope, wanted=power, confidence=confidence)


def _from_pilot(file: str, reading: tuple[str | None, str | None, str | None], *, goal: Goal, **question) -> Power:
    columns, scaling, where = reading
    options.one_of("--scaling", scaling, ("strong", "weak"))
    from ..data.catalog import open_record
    from ..fit.launches import from_record
    from ..fit.planning.sizing import SizingError, from_pilot

    record = open_record(file, columns=columns, scaling=scaling, where=where)
    table = from_record(record)
    if goal != "share":
        refuse_one_count(table)
    try:
        return from_pilot(record, table, goal=goal, **question)
    except SizingError as error:
        raise typer.BadParameter(str(error)) from error
