"""``breakeven probe [FILE]``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from . import options, output
from .ranks import Company, Ranks, asked_of, joined

if TYPE_CHECKING:
    from ..data.schema import Plan
    from ..fit.links import Links
    from ..fit.tried_order import TriedOrder

LinksFile = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="A record of links, to be read again without measuring.", show_default=False),
]
Pairs = Annotated[bool, typer.Option("--pairs", help="Measure messages between every two devices.")]
HowMany = Annotated[
    int | None,
    typer.Option(
        "--devices",
        metavar="N",
        min=2,
        help="The first N devices. Default: all; of forced host devices 8.",
        show_default=False,
    ),
]
Payloads = Annotated[
    str, typer.Option(metavar="A,B", help="Bytes of a message, two sizes or more: their line is alpha + beta V.")
]
TryOrder = Annotated[
    bool, typer.Option("--try-order", help="Measure all-reduces in the proposed order beside the order as it stands.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--figures", metavar="FOLDER", help="Draw the times as maps too, PDF and PNG.", show_default=False),
]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Record to write, or to go on with. Default: links.jsonl.",
        show_default=False,
    ),
]
WHAT_TO_MEASURE = ("devices", "payloads", "launches", "budget", "calls", "platform", "seed")
"""Options of a sweep of pairs; an order is tried as its pairs were measured."""
HOW_TO_RUN = ("timeout", "processes", "coordinator", "hide_hosts")
"""Options of whatever is measured."""
MANY_PROGRAMS = 500
"""More programs than this make a launch take a minute or more (some 0.1 s each, to compile and to call)."""


def command(
    context: typer.Context,
    file: LinksFile = None,
    pairs: Pairs = False,
    devices: HowMany = None,
    payloads: Payloads = "4,1MiB",
    launches: options.Launches = 6,
    budget: options.Budget = None,
    calls: options.Calls = None,
    platform: options.Platform = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = "120s",
    processes: options.Processes = None,
    coordinator: options.Coordinator = None,
    hide_hosts: options.HideHosts = False,
    try_order: TryOrder = False,
    record: RecordFile = None,
    folder: Folder = None,
    confidence: options.Confidence = 0.95,
    as_json: options.AsJson = False,
) -> None:
    """Measure the link between every two devices: alpha, beta, what is slow, and the fastest ring.

    \b
    Example:
      breakeven probe --pairs -o links.jsonl
      breakeven probe links.jsonl
      breakeven probe links.jsonl --try-order

    A message goes to and fro between two devices, 2 and 8 times; the slope is the time of one. --try-order writes
    beside FILE, as links-order.jsonl, and measures as FILE was measured. Exit code 1: fewer than three launches, so
    that nothing has an interval.
    """
    if folder is not None:
        options.output_folder("--figures", folder)
    if pairs == (file is not None):
        output.bad_argument("FILE", "give a record of links to read, or --pairs to measure one.")
    if file is not None:
        _refuse_what_is_not_measured(context, record, try_order=try_order)
    path = Path("links.jsonl") if record is None else record
    if pairs:
        options.output_record("-o", path)
        if try_order:
            options.output_file("--try-order", _beside(path))
    show = _Show(folder=folder, confidence=confidence, as_json=as_json)
    if file is not None and not try_order:
        show(file)
    from ..measure.link_plans import LINKS

    company = Company(
        processes=processes, coordinator=coordinator, timeout=timeout, hide_hosts=hide_hosts, options=asked_of(context)
    )
    with joined(LINKS, company) as ranks:
        if pairs:
            plan = _plan(devices, payloads, launches, budget, calls, platform, seed, timeout, ranks)
            _measure(plan, path, ranks)
        source = str(path) if file is None else file
        asked = timeout if _given(context, "timeout") else None
        show(source, _try_order(source, confidence, asked, ranks) if try_order else None)


def _refuse_what_is_not_measured(context: typer.Context, record: Path | None, *, try_order: bool) -> None:
    """Options that would say nothing about a FILE that is only read, or whose order is tried."""
    if record is not None:
        output.bad_argument("-o", "goes with --pairs; a FILE is only read.")
    if try_order:
        needed = dict.fromkeys(WHAT_TO_MEASURE, "--pairs; an order is tried as FILE was measured.")
    else:
        needed = dict.fromkeys(WHAT_TO_MEASURE, "--pairs; a FILE is only read.")
        needed |= dict.fromkeys(HOW_TO_RUN, "--pairs or --try-order; a FILE is only read.")
    for name, what in needed.items():
        if _given(context, name):
            output.bad_argument(f"--{name.replace('_', '-')}", f"goes with {what}")


def _given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _beside(source: Path) -> Path:
    """Where the record of an order that is tried goes."""
    return source.with_name(f"{source.stem}-order{source.suffix}")


@dataclass(frozen=True, kw_only=True)
class _Show:
    """Reads a record, prints what it says, and ends the command."""

    folder: Path | None
    confidence: float
    as_json: bool

    def __call__(self, source: str, beside: Path | None = None) -> NoReturn:
        """Show a record of pairs or of orders, and one of orders ``beside`` it."""
        links, tried = _read(source, self.confidence)
        if beside is not None:
            _, tried = _read(str(beside), self.confidence)
        if self.folder is not None:
            self._draw(links, source, self.folder)
        if self.as_json:
            output.emit_json({"links": links, "tried": tried})
        else:
            from . import render_links
            from .text import page

            output.emit(page(links and render_links.links(links), tried and render_links.tried_order(tried)))
        from ..fit.intervals import MIN_LAUNCHES

        launches = min(found.num_launches for found in (links, tried) if found is not None)
        raise typer.Exit(output.UNDECIDED if launches < MIN_LAUNCHES else output.DECIDED)

    def _draw(self, links: Links | None, source: str, folder: Path) -> None:
        if links is None:
            output.bad_argument("--figures", f"{source} holds no messages between pairs to draw.")
        from ..figures.links import save_links

        for drawn in save_links(links, folder):
            output.note(f"wrote {drawn}")


def _read(source: str, confidence: float) -> tuple[Links | None, TriedOrder | None]:
    """What a record of either kind says; what is missing in it has its reason on stderr."""
    from ..data.catalog import open_record
    from ..fit.links import links
    from ..fit.tried_order import tried
    from .render_record import shell_word

    record = open_record(source)
    if record.failures:
        first, listed = record.failures[0], f"'breakeven show {shell_word(source)}' lists them"
        where = f" ({first.cell})" if first.cell is not None else ""
        reason = first.message.partition("\n")[0]
        output.warn(f"{len(record.failures)} failures ({listed}), the first{where}: {first.error}: {reason}")
    if record.sweeps[0].plan.orders:
        return None, tried(record, confidence=confidence)
    return links(record, confidence=confidence), None


def _plan(
    devices: int | None,
    payloads: str,
    launches: int,
    budget: str | None,
    calls: int | None,
    platform: str | None,
    seed: int,
    timeout: str,
    ranks: Ranks,
) -> Plan:
    options.one_of("--platform", platform, ("cpu", "gpu", "tpu"))
    sizes = [options.size("--payloads", word) for word in payloads.split(",")]
    budget_s = options.seconds("--budget", budget or "60s")
    step_timeout_s = options.timeout(timeout)
    from ..measure.link_plans import pairs_plan
    from ..measure.processes.alignment import Layout
    from .planned import available

    return pairs_plan(
        available(platform),
        devices=devices,
        payloads=sizes,
        launches=launches,
        budget_s=budget_s,
        calls=calls,
        step_timeout_s=step_timeout_s,
        seed=seed,
        layout=Layout(processes=ranks.processes, nodes=ranks.nodes, launched=ranks.launched),
    )


def _measure(plan: Plan, path: Path, ranks: Ranks) -> None:
    """Measure into a record, or go on with it; a long launch is announced."""
    from ..measure.inventory import link_cells
    from ..measure.sweep import run
    from .measure import warn_of_budget
    from .progress import reporter

    if (programs := len(link_cells(plan))) > MANY_PROGRAMS:
        output.warn(
            f"{programs} programs in every launch, some 0.1 s each to compile and visit once, whatever the budget: "
            "give fewer --devices, or fewer --launches"
        )
    started = time.monotonic()
    try:
        with reporter() as report:
            run(plan, path, on_progress=report, start=ranks.start)
    except KeyboardInterrupt as interruption:
        output.interrupted(interruption)
    warn_of_budget(plan, time.monotonic() - started)


def _try_order(source: str, confidence: float, timeout: str | None, ranks: Ranks) -> Path | None:
    """Measure the proposed order beside the one as it stands; return that record, None where there is none to try.

    ``timeout``: in place of the record's, if given.
    """
    import msgspec

    from ..data.store import read
    from ..fit.links import links
    from ..fit.ring_orders import AS_IT_STANDS, worth_trying
    from ..measure.link_plans import orders_plan

    record = read(source)
    plan = record.sweeps[0].plan
    if plan.orders:
        output.bad_argument("--try-order", f"{source} is already the record of an order that was tried.")
    found = links(record, confidence=confidence)
    best = worth_trying(found.orders)
    if best is None or best.proposed is None or best.reason == AS_IT_STANDS:
        reasons = dict.fromkeys(one.reason for one in (found.orders if best is None else [best]))
        output.warn(f"--try-order: nothing to try: {'; '.join(reasons)}")
        return None
    if plan.processes != ranks.processes:
        measured = f"{plan.processes} process{'es' if plan.processes != 1 else ''}"
        output.bad_argument("--try-order", f"{source} was measured with {measured}: give --processes {plan.processes}.")
    if timeout is not None:
        plan = msgspec.structs.replace(plan, step_timeout_s=options.timeout(timeout))
    beside = options.output_file("--try-order", _beside(Path(source)))
    _measure(orders_plan(plan, best.proposed.order), beside, ranks)
    return beside
