"""``breakeven next FILE``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, cast

import typer

from . import options, output
from .answering import Source, fit_on_cpu, refuse_one_count

if TYPE_CHECKING:
    from ..fit.objective import Objective
    from ..fit.planning.proposal import NextPoint

DEFAULT_PRECISION = 0.10
_TARGET = re.compile(r"(?P<target>.+?)(?:\s*(?:±|\+/?-)\s*(?P<percent>\d*\.?\d+)\s*%)?", re.DOTALL)

Target = Annotated[
    str,
    typer.Option(
        "--for",
        metavar="break-even|optimum|PARAMETER",
        help="What to know better: 'break-even ±10%', optimum, or a parameter of the law such as 'alpha ±5%'.",
    ),
]
Budget = Annotated[str, typer.Option(metavar="TIME", help="Wall time of the new sweep, start-up included.")]
Noise = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        min=1e-4,
        max=1.0,
        help="Spread of a time between launches (0.05: 5 %), where the file does not show it.",
        show_default=False,
    ),
]


def command(
    file: options.File,
    target: Target = "break-even",
    budget: Budget = "60s",
    strategy: options.Strategy = None,
    size: options.Size = None,
    objective: options.Objective = None,
    reference: options.Reference = None,
    max_devices: options.MaxDevices = None,
    tolerance: options.Tolerance = 0.05,
    confidence: options.Confidence = 0.95,
    noise: Noise = None,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Say which sweep to measure next: the one that narrows an answer most, and its command.

    \b
    Example:
      breakeven next data:sin-reduce --for "break-even ±5%" --budget 60s
      breakeven next sweep.jsonl --for alpha

    A sweep of another plan is never pooled with this one, so it must answer by itself; more launches of the same plan
    add to it. Exit code 1: what is wanted is not to be reached within the budget.
    """
    wanted, precision = _target(target)
    budget_s = options.seconds("--budget", budget)
    objective = options.one_of("--objective", objective, ("time", "throughput"))
    found = _find(
        Source(file=file, columns=columns, scaling=scaling, where=where),
        wanted,
        precision=precision,
        budget_s=budget_s,
        strategy=strategy,
        size=None if size is None else options.size("--size", size),
        objective=cast("Objective | None", objective),
        reference=reference,
        max_devices=max_devices,
        tolerance=tolerance,
        confidence=confidence,
        noise=noise,
    )
    if as_json:
        output.emit_json(found)
    else:
        from .render_next import following

        output.emit(following(found))
    raise typer.Exit(output.DECIDED if found.reached else output.UNDECIDED)


def _target(text: str) -> tuple[str, float]:
    """``alpha ±5%`` as a name and a share."""
    match = _TARGET.fullmatch(text.strip())
    if match is None:
        output.bad_argument("--for", f"{text!r} is no target; write break-even, optimum or a parameter's name.")
    if match["target"] == "optimum" and match["percent"]:
        output.bad_argument("--for", f"{text!r}: of the optimum --tolerance says how much a call may lose.")
    precision = float(match["percent"]) / 100 if match["percent"] else DEFAULT_PRECISION
    if not 0 < precision < 1:
        output.bad_argument("--for", f"{text!r}: the precision must lie between 0 and 100 %.")
    return match["target"], precision


def _find(
    source: Source,
    target: str,
    *,
    precision: float,
    budget_s: float,
    strategy: str | None,
    size: int | None,
    objective: Objective | None,
    reference: int | None,
    max_devices: int | None,
    tolerance: float,
    confidence: float,
    noise: float | None,
) -> NextPoint:
    fit_on_cpu()
    options.one_of("--scaling", source.scaling, ("strong", "weak"))
    from ..data.catalog import open_record
    from ..data.store import RecordError
    from ..fit.launches import from_record
    from ..fit.lawfit import fit_laws
    from ..fit.planning.launch_cost import launch_cost
    from ..fit.planning.next_point import next_point
    from ..fit.planning.parameter_target import UnknownParameter
    from ..fit.planning.spread import NoSpread

    record = open_record(source.file, columns=source.columns, scaling=source.scaling, where=source.where)
    table = from_record(record)
    refuse_one_count(table)
    if not table.strategies:
        raise RecordError(f"{table.source}: holds collectives only, and no workload to measure again.")
    strategy = strategy or table.strategies[0]
    if strategy not in table.strategies:
        output.bad_argument("--strategy", f"{strategy!r} was not measured; measured: {', '.join(table.strategies)}.")
    law = target not in ("break-even", "optimum")
    try:
        return next_point(
            table,
            target=target,
            cost=launch_cost(record),
            budget_s=budget_s,
            strategy=strategy,
            fits=fit_laws(table, strategy, confidence=confidence) if law else None,
            precision=precision,
            size=size,
            objective=objective,
            reference=reference,
            max_devices=max_devices,
            tolerance=tolerance,
            confidence=confidence,
            noise=noise,
        )
    except NoSpread as error:
        raise RecordError(str(error)) from error
    except UnknownParameter as error:
        output.bad_argument("--for", str(error))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
