"""Progress of a sweep on stderr: a bar on a terminal, one line a launch elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from .output import expendable, note

if TYPE_CHECKING:
    from ..measure.sweep import Progress


class Reporter(Protocol):
    """Shows a sweep's progress while its block lasts."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        ...

    def say(self, text: str) -> None:
        """Show a line that stays."""
        ...


def reporter() -> Reporter:
    """A bar where someone looks at stderr, lines where it goes into a file."""
    return Bar() if sys.stderr.isatty() else Lines()


class Lines:
    """One line when a launch begins."""

    def __init__(self) -> None:
        self._launch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, progress: Progress) -> None:
        """Say which launch it is, once."""
        if progress.launch != self._launch:
            self._launch = progress.launch
            note(f"launch {progress.launch} of {progress.launches}{_time_left(progress)}")

    def say(self, text: str) -> None:
        """Show a line."""
        note(text)


class Bar:
    """A bar that is drawn only when a report comes: a drawing thread would run beside the measurement."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=1.0, left="")
        self._whole_s: float | None = None

    def __enter__(self) -> Self:
        with expendable():
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with expendable():
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Draw one report."""
        with expendable():
            self._bar.update(
                self._task,
                completed=self._fraction(progress),
                description=f"launch {progress.launch} of {progress.launches}",
                left=f"{_what(progress)}{_time_left(progress)}",
                refresh=True,
            )

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        with expendable():
            self._bar.console.print(text, highlight=False, markup=False)

    def _fraction(self, progress: Progress) -> float:
        """Share of the time where it is bounded, else of the launches."""
        if progress.seconds_left is None:
            return (progress.launch - 1) / progress.launches
        if self._whole_s is None:
            self._whole_s = max(progress.seconds_left, 1e-9)
        return 1 - progress.seconds_left / self._whole_s


def _what(progress: Progress) -> str:
    return f"round {progress.round}" if progress.round else progress.what


def _time_left(progress: Progress) -> str:
    """Every launch visits each cell once, also when the budget is used up."""
    if progress.seconds_left is None:
        return ""
    return f", {progress.seconds_left:.0f} s left" if progress.seconds_left > 0 else ", past the budget"
