"""A user's own program: the declaration at its ``build`` function, and finding it by name."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from ..model.cell import AS_WRITTEN
from .signatures import refuse_signature
from .workload import Build, MeasureError, Workload

_DECLARATION = "__breakeven__"
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a user says about a ``build`` function; the fields are those of ``Workload``."""

    path: Literal["strong", "weak"] | None = None
    unit: str = "elements"
    local: Build | None = None
    work: Callable[[float], float] | None = None
    divides: bool = True
    name: str = ""


def workload(
    *,
    path: Literal["strong", "weak"] | None = None,
    unit: str = "elements",
    local: Build | None = None,
    work: Callable[[float], float] | None = None,
    divides: bool = True,
    name: str = "",
) -> Callable[[Function], Function]:
    """Declare a ``build(mesh, size)`` function; the function itself stays as it is.

    Parameters
    ----------
    path : ``strong``: by default ``--sizes`` are global, the work stays the same over counts;
        ``weak``: they are per device, the work grows with the count
    unit : what ``size`` counts, for printing
    local : a ``build`` of the control: the same arguments and work per device, no communication
    work : work of one device (flops, or bytes) as a function of the local size S / n, where XLA cannot know it
    divides : whether a global size must divide by the number of devices
    name : one line for printing

    Examples
    --------
    >>> @workload(path="weak", unit="rows")
    ... def build(mesh, size): ...
    """
    if path not in (None, "strong", "weak"):
        raise MeasureError(f"path must be 'strong' or 'weak', got {path!r}.")
    for argument, text in (("unit", unit), ("name", name)):
        if not (isinstance(text, str) and text.isprintable()):
            raise MeasureError(f"{argument} must be text on one line, as in {argument}='rows', got {text!r}.")
    if not isinstance(divides, bool):
        raise MeasureError(f"divides must be True or False, got {divides!r}.")
    declaration = Declaration(path=path, unit=unit, local=local, work=work, divides=divides, name=name)

    def declare(build: Function) -> Function:
        setattr(build, _DECLARATION, declaration)
        return build

    return declare


def resolve(name: str | Callable[..., Any]) -> Workload:
    """Find a workload: a built-in's name, ``path/to/file.py:build``, ``package.module:build``, or the function itself.

    A user's file is imported, and what it does at its top stays in this process: ``described`` has a child do it.

    Raises
    ------
    MeasureError
        If there is no such workload, file, module or function, or importing it fails (with the user's own frames).
    """
    if callable(name):
        return _of_function(name)
    if (place := place_of(name)) is None:
        return _builtin(name)
    target, function = place
    module = _from_file(target) if _is_path(target) else _from_module(target)
    return _declared(name, _function(module, target, function))


def place_of(name: str) -> tuple[str, str] | None:
    """File or module of a user's workload, and the function in it; None for the name of a built-in one.

    Raises
    ------
    MeasureError
        If one of the two is not given, there is no such file, or its name is not in UTF-8.
    """
    _check_text(name)
    target, colon, function = name.rpartition(":")
    if not colon:
        return None
    if not target or not function:
        raise MeasureError(f"{name!r}: write path/to/file.py:function or package.module:function.")
    if _is_path(target) and not Path(target).expanduser().is_file():
        raise MeasureError(f"{target}: no such file.")
    return target, function


def user_frames(error: BaseException) -> tuple[str, ...]:
    """The traceback's frames in a user's own files, outermost first; the last two of any kind where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return (f'File "{error.filename}", line {error.lineno}: {(error.text or "").strip()}',)
    ours = [frame for frame in frames if is_user_file(frame.filename)] or list(frames)[-2:]
    return _shortened([printable(f'File "{f.filename}", line {f.lineno}, in {f.name}: {f.line}') for f in ours])


def words_of(error: BaseException) -> str:
    """An exception's message, fit for a terminal and a record: printable, and not too long."""
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - a user's exception may fail to say what it is
        text = f"(it cannot say what it is: {type(second).__name__})"
    return "\n".join(_shortened([printable(line) for line in text.split("\n")]))[:_MAX_MESSAGE]


def printable(line: str) -> str:
    """A line in which what a terminal would obey, or no record can hold, is spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _shortened(lines: Sequence[str]) -> tuple[str, ...]:
    """The first and the last of many lines: a recursion has a thousand."""
    left_out = len(lines) - 2 * _EACH_END
    if left_out <= 1:
        return tuple(lines)
    return (*lines[:_EACH_END], f"... {left_out} more ...", *lines[-_EACH_END:])


def is_user_file(filename: str) -> bool:
    """Whether a file is neither Python's, nor an installed library's, nor ours."""
    if filename.startswith("<"):
        return False
    path = os.path.realpath(filename)
    installed = _INSTALLED & set(Path(path).parts)
    return not installed and not any(path.startswith(root + os.sep) for root in _NOT_THE_USERS)


def with_frames(message: str, error: BaseException) -> str:
    """``message``, the user's frames and the error itself, one below the other."""
    lines = [message, *(f"  {frame}" for frame in user_frames(error)), f"{type(error).__name__}: {words_of(error)}"]
    return "\n".join(lines)


_SET_UP_BY_US = ("jax_num_cpu_devices", "jax.distributed.initialize")
_MAX_MESSAGE = 4000
_EACH_END = 8
"""Lines kept at each end of a long text."""
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of libraries wherever they lie: a user's own, a distribution's, one on ``PYTHONPATH``."""
_NOT_THE_USERS = tuple(
    {
        os.path.realpath(path)
        for path in (
            *(sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")),
            str(Path(__file__).parent),
        )
    }
)


def _builtin(name: str) -> Workload:
    from . import workloads

    if name in (names := workloads.names()):
        return workloads.builtin(name)
    if name.endswith(".py"):
        raise MeasureError(f"{name!r}: name the function too, as in {name}:build.")
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise MeasureError(
        f"unknown workload {name!r}.{hint} Built in: {', '.join(names)}. Your own: path/to/file.py:function."
    )


def _is_path(target: str) -> bool:
    return target.endswith(".py") or os.sep in target


def _from_file(target: str) -> ModuleType:
    path = Path(target).expanduser()
    specification = importlib.util.spec_from_file_location(f"breakeven_user_{path.stem}", path.resolve())
    if specification is None or specification.loader is None:
        raise MeasureError(f"{target}: not a Python file.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses and pickling look the module up
    with _imports(target, path.resolve().parent):
        specification.loader.exec_module(module)
    return module


def _from_module(target: str) -> ModuleType:
    with _imports(target, Path.cwd()):
        try:
            return importlib.import_module(target)
        except ModuleNotFoundError as error:
            # A module that the user's own module misses is the user's error, and shown with its frames.
            if error.name is None or not (target == error.name or target.startswith(error.name + ".")):
                raise
            raise MeasureError(f"{target}: no such module (looked in {Path.cwd()} and the installed ones).") from None


@contextlib.contextmanager
def _imports(target: str, folder: Path) -> Iterator[None]:
    """Import as ``python file.py`` would: neighbours can be imported. What the file prints goes to stderr."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except MeasureError:
        raise
    except BaseException as error:  # a user's code may raise anything, sys.exit included
        raise MeasureError(with_frames(f"{target}: importing it failed.", error) + _not_the_files(error)) from error


def _not_the_files(error: BaseException) -> str:
    """What to do about a file that sets up what is set up by the time it is imported."""
    calls = [call for call in _SET_UP_BY_US if call in words_of(error)]
    return f"\nbreakeven sets up devices and processes itself: drop {calls[0]} from the file." if calls else ""


def _function(module: ModuleType, target: str, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if callable(found):
        return found
    own = [
        key
        for key, value in vars(module).items()
        if callable(value) and not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    has = f"it has {', '.join(own)}" if own else "it has none"
    raise MeasureError(f"{target}: no function {name!r} in it; {has}.")


def _declared(name: str, build: Callable[..., Any]) -> Workload:
    said: Declaration = getattr(build, _DECLARATION, Declaration())
    refuse_signature(build, name, ("mesh", "size"))
    refuse_signature(said.local, f"{name}: local {_name(said.local)}", ("mesh", "size"))
    refuse_signature(said.work, f"{name}: work {_name(said.work)}", ("local_size",))
    return Workload(
        name=name,
        builds={AS_WRITTEN: build},
        path=said.path,
        unit=said.unit,
        local=said.local,
        work=said.work,
        divides=said.divides,
        summary=said.name,
    )


def _of_function(build: Callable[..., Any]) -> Workload:
    """A function object, by the name under which another process finds it."""
    qualified, code = getattr(build, "__qualname__", "<unnamed>"), getattr(build, "__code__", None)
    filename = getattr(code, "co_filename", "<unknown>")
    if code is None or not qualified.isidentifier() or not Path(filename).is_file():
        raise MeasureError(
            f"{qualified}: fresh processes measure and must find the function: define it at the top level of a file."
        )
    _check_text(filename)
    return _declared(f"{filename}:{qualified}", build)


def _check_text(name: str) -> None:
    """A record, in UTF-8, names the workload; a file's name in another encoding holds lone surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise MeasureError(f"{printable(name)}: the name is not in UTF-8, as a record is; rename the file.")


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
