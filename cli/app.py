"""The command ``breakeven``: one Typer application, each command in its own module.

Only what parses the command line is imported here; a command imports its rooms when it runs, so that ``--help``
stays below 150 ms.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated

import typer

from . import (
    compare,
    diagnose,
    explain,
    figures,
    fit,
    inspect,
    measure,
    merge,
    output,
    power,
    predict,
    probe,
    show,
    study,
    workloads,
)
from . import next as next_point

app = typer.Typer(
    name="breakeven",
    help=(
        "From where on does adding devices help a JAX program, how many to use, and what holds the rest back.\n\n"
        "Start with:  breakeven study issue-21411"
    ),
    no_args_is_help=True,
    add_completion=False,
    # Plain help and a ready default for --help: typer then imports neither rich nor pydantic to print it.
    rich_markup_mode=None,
    context_settings={"default_map": {"help": False}, "max_content_width": 100},
)

for module in (
    study,
    measure,
    inspect,
    merge,
    fit,
    explain,
    diagnose,
    predict,
    compare,
    next_point,
    power,
    probe,
    figures,
    show,
    workloads,
):
    first_line = (module.command.__doc__ or "").partition("\n")[0]
    app.command(name=module.__name__.rpartition(".")[2], short_help=first_line)(module.command)


def _print_version(asked: bool) -> None:
    if asked:
        import breakeven

        output.emit(f"breakeven {breakeven.__version__}")  # pyright: ignore[reportAttributeAccessIssue]
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


def main() -> None:
    """Entry point: a user's mistake ends in one line on stderr and exit code 2, never in a traceback."""
    output.open_channels()
    output.show_warnings()
    # Little that a command makes is garbage, and at the end all of it is: a fit takes a fifth less time when neither
    # is searched for. A sweep of hours still collects now and then.
    gc.set_threshold(10_000_000)
    atexit.register(gc.freeze)
    try:
        app()
    except ValueError as error:
        from ..data.store import RecordError
        from ..measure.workload import MeasureError

        if not isinstance(error, MeasureError | RecordError):
            raise
        output.note(f"error: {error}")
        sys.exit(output.BAD_INPUT)
    except OSError as error:
        # A folder that cannot be written, a disk that is full: the user's to mend.
        output.note(f"error: {error.filename or 'writing the output'}: {error.strerror}.")
        sys.exit(output.BAD_INPUT)
