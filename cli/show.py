"""``breakeven show FILE``."""

from __future__ import annotations

from . import options, output


def command(
    file: options.File,
    columns: options.Columns = None,
    scaling: options.Scaling = None,
    where: options.Where = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what is in a record: plan, environment, launches, cells, failures, number of samples.

    \b
    Example:
      breakeven show data:issue-21411
      breakeven show sweep.jsonl --json
    """
    options.one_of("--scaling", scaling, ("strong", "weak"))
    from ..data.catalog import open_record
    from .record_summary import summarise

    record = open_record(file, columns=columns, scaling=scaling, where=where)
    summary = summarise(record)
    if as_json:
        output.emit_json(summary)
    else:
        from .render_record import show

        output.emit(show(summary))
    if impossible := sum(min(visit.latency_ns, default=1) <= 0 for visit in record.visits):
        output.warn(f"{impossible} visits hold times that are zero or negative: other commands refuse this record")
