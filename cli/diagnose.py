"""``breakeven diagnose FILE``."""

from __future__ import annotations

from . import options, output
from .answering import fit_on_cpu


def command(
    file: options.File,
    strategy: options.Strategy = None,
    confidence: options.Confidence = 0.95,
    margin: options.Margin = 0.10,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Check what the statistics assume: steadiness, replicates, noise, influence; and the twelve rules of reporting.

    \b
    Example:
      breakeven diagnose data:mean-all
      breakeven diagnose times.csv --columns devices=gpus,latency_s=ms/1e3 --json

    Each check is ok, FAILED or could not be run; what failed comes with a remedy. A family of tests errs in 1 % of
    sound sweeps, and an effect below 5 % of the time is no alarm. Single repeats (no launches) are checked as series.
    """
    options.one_of("--scaling", scaling, ("strong", "weak"))
    fit_on_cpu()
    from ..data.catalog import open_record
    from ..fit.checks.diagnostics import diagnose
    from ..fit.launches import from_record

    record = open_record(file, columns=columns, scaling=scaling, where=where)
    table = from_record(record)
    if strategy is not None and strategy not in (known := {cell.strategy for cell in table.cells}):
        output.bad_argument("--strategy", f"{strategy!r} was not measured; measured: {', '.join(sorted(known))}.")
    found = diagnose(record, table, strategy=strategy, confidence=confidence, margin=margin)
    if as_json:
        output.emit_json(found)
    else:
        from .render_diagnose import diagnosis

        output.emit(diagnosis(found))
