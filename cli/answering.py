"""From a FILE to its Answer, in this process and on the CPU."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import typer

from ..model.cell import devices
from . import options

if TYPE_CHECKING:
    from ..fit.answer import Answer
    from ..fit.launches import LaunchTable


@dataclass(frozen=True, kw_only=True)
class Source:
    """A FILE and, for CSV, how to read it."""

    file: str
    columns: str | None = None
    scaling: str | None = None
    where: str | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a table, as the command line gave it."""

    strategy: str | None = None
    size: str | None = None
    objective: str | None = None
    reference: int | None = None
    max_devices: int | None = None
    tolerance: float = 0.05
    confidence: float = 0.95
    margin: float = 0.10
    equivalence: float = 0.05
    seed: int = 0


def fit_on_cpu() -> None:
    """Keep this process off any accelerator and let it reuse compiled fits.

    Must run before JAX starts a backend. Processes that it starts are told their own platform.
    """
    if "jax" in sys.modules:
        import jax

        jax.config.update("jax_platforms", "cpu")
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
    from ..fit.compilation import enable_cache

    enable_cache()


def open_table(source: Source) -> LaunchTable:
    """Read a FILE into the table that the fits start from."""
    options.one_of("--scaling", source.scaling, ("strong", "weak"))
    from ..data.catalog import open_record
    from ..fit.launches import from_record

    record = open_record(source.file, columns=source.columns, scaling=source.scaling, where=source.where)
    return from_record(record)


def ask(table: LaunchTable, question: Question) -> Answer:
    """Answer a question about a table.

    Raises
    ------
    RecordError
        If only one device count was measured.
    """
    objective = options.one_of("--objective", question.objective, ("time", "throughput"))
    size = None if question.size is None else options.size("--size", question.size)
    refuse_one_count(table)
    from ..fit.question import QuestionError
    from ..fit.report import answer

    try:
        return answer(
            table,
            strategy=question.strategy,
            size=size,
            objective=cast('Literal["time", "throughput"] | None', objective),
            reference=question.reference,
            max_devices=question.max_devices,
            tolerance=question.tolerance,
            confidence=question.confidence,
            margin=question.margin,
            equivalence=question.equivalence,
            seed=question.seed,
        )
    except QuestionError as error:
        raise typer.BadParameter(str(error)) from error


def refuse_one_count(table: LaunchTable) -> None:
    """Raise RecordError for a record in which nothing can be compared."""
    counts = table.devices()
    if len(counts) == 1:
        from ..data.store import RecordError

        raise RecordError(
            f"{table.source}: holds {devices(counts[0])} only, and nothing to compare with. "
            "Measure another count with --devices."
        )


def answer_file(source: Source, question: Question) -> Answer:
    """Open a FILE and answer."""
    fit_on_cpu()
    return ask(open_table(source), question)
