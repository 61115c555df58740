import os
import sys
from pathlib import Path

import jax
import pytest
from breakeven.measure import userfile, workloads
from breakeven.measure.workload import MeasureError

import breakeven

PLAIN = """
def build(mesh, size):
    return (lambda x: x), (size,)

def other(mesh, size): ...
"""
DECLARED = """
import breakeven

def local(mesh, size): ...

@breakeven.workload(path="weak", unit="rows", local=local, work=lambda s: 40 * s, divides=False, name="rows of mine")
def build(mesh, size):
    return "fn", (mesh, size)
"""


@pytest.fixture
def user(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_an_undecorated_function_needs_no_declaration(user):
    name = user(PLAIN) + ":build"
    found = userfile.resolve(name)
    assert found.name == name
    assert found.path is None
    assert found.strategies == ("as-written",)
    assert found.builds["as-written"](None, 3)[1] == (3,)


def test_a_declaration_is_carried_and_leaves_the_function_as_it_is(user):
    found = userfile.resolve(user(DECLARED) + ":build")
    assert (found.path, found.unit, found.divides, found.summary) == ("weak", "rows", False, "rows of mine")
    assert found.local is not None
    assert found.local.__name__ == "local"
    assert found.work is not None
    assert found.work(10) == 400
    assert found.builds["as-written"]("mesh", 5) == ("fn", ("mesh", 5))


def test_the_front_door_offers_the_decorator():
    assert breakeven.workload is userfile.workload


def test_a_wrong_path_in_the_declaration_is_said():
    with pytest.raises(MeasureError, match="path must be 'strong' or 'weak', got 'both'"):
        userfile.workload(path="both")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"unit": 5}, "unit must be text on one line, as in unit='rows', got 5"),
        ({"unit": "ro\nws"}, r"unit must be text on one line.*got 'ro\\nws'"),
        ({"name": None}, "name must be text on one line.*got None"),
        ({"divides": "no"}, "divides must be True or False, got 'no'"),
    ],
)
def test_what_cannot_be_declared_is_said_by_argument(wrong, message):
    with pytest.raises(MeasureError, match=message):
        userfile.workload(**wrong)


def test_builtins_are_found_by_name():
    for name in workloads.names():
        assert userfile.resolve(name).name == name


def test_an_unknown_name_lists_the_builtins_and_the_nearest():
    with pytest.raises(
        MeasureError, match=r"unknown workload 'mean_all'. Did you mean mean-all\? Built in: .*train-step"
    ):
        userfile.resolve("mean_all")


def test_a_file_without_function_name():
    with pytest.raises(MeasureError, match=r"name the function too, as in train.py:build"):
        userfile.resolve("train.py")


def test_a_missing_file(tmp_path):
    with pytest.raises(MeasureError, match=r"nowhere.py: no such file"):
        userfile.resolve(f"{tmp_path}/nowhere.py:build")


@pytest.mark.parametrize("name", [":build", "mine.py:"])
def test_half_a_name(name):
    with pytest.raises(MeasureError, match=r"write path/to/file.py:function or package.module:function"):
        userfile.resolve(name)


def test_a_file_without_the_function_lists_those_it_has(user):
    with pytest.raises(MeasureError, match="no function 'biuld' in it; it has build, other"):
        userfile.resolve(user("from math import sin\n" + PLAIN) + ":biuld")


def test_a_file_without_any_function(user):
    with pytest.raises(MeasureError, match="no function 'build' in it; it has none"):
        userfile.resolve(user("x = 1\n") + ":build")


def test_an_import_error_shows_the_users_own_frames(user):
    name = user("def prepare():\n    return 1 / 0\n\nprepare()\n", "spoilt.py")
    with pytest.raises(MeasureError, match="importing it failed") as caught:
        userfile.resolve(name + ":build")
    *_, outer, inner, last = str(caught.value).splitlines()
    assert outer.endswith('spoilt.py", line 4, in <module>: prepare()')
    assert inner.endswith('spoilt.py", line 2, in prepare: return 1 / 0')
    assert last == "ZeroDivisionError: division by zero"
    assert "importlib" not in str(caught.value)


def test_a_syntax_error_names_its_line(user):
    with pytest.raises(MeasureError, match=r'(?s)wrong.py", line 2: def build\(:.*SyntaxError'):
        userfile.resolve(user("x = 1\ndef build(:\n", "wrong.py") + ":build")


def test_a_file_that_exits(user):
    with pytest.raises(MeasureError, match=r"(?s)importing it failed.*SystemExit: 3"):
        userfile.resolve(user("import sys\nsys.exit(3)\n") + ":build")


@pytest.mark.parametrize(
    ("call", "drop"),
    [
        ("config.update('jax_num_cpu_devices', 4)", "jax_num_cpu_devices"),
        ("distributed.initialize('127.0.0.1:1', 1, 0)", "jax.distributed.initialize"),
    ],
)
def test_a_file_that_sets_up_what_is_set_up_by_then(user, call, drop):
    jax.devices()
    with pytest.raises(MeasureError, match=f"sets up devices and processes itself: drop {drop} from the file"):
        userfile.resolve(user(f"import jax\njax.{call}\n") + ":build")


def test_a_module_is_found_from_the_current_folder(user, tmp_path, monkeypatch):
    user(PLAIN, "module_of_a_user.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert userfile.resolve("module_of_a_user:build").name == "module_of_a_user:build"


def test_a_missing_module_and_a_module_that_misses_one(user, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(MeasureError, match=r"no_such_package.train: no such module"):
        userfile.resolve("no_such_package.train:build")
    user("import not_installed_anywhere\n", "needs_more.py")
    with pytest.raises(MeasureError, match=r"(?s)importing it failed.*needs_more.py.*not_installed_anywhere"):
        userfile.resolve("needs_more:build")


def test_neighbours_can_be_imported(user, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    user("WIDTH = 7\n", "neighbour_of_mine.py")
    name = user("import neighbour_of_mine\n\ndef build(mesh, size): return neighbour_of_mine.WIDTH\n")
    assert userfile.resolve(name + ":build").builds["as-written"](None, 1) == 7


def test_a_function_is_found_again_by_file_and_name():
    found = userfile.resolve(build_here)
    assert found.name == f"{__file__}:build_here"
    assert found.builds["as-written"] is build_here


def build_here(mesh, size):
    return None


def test_a_function_that_another_process_cannot_find():
    def inner(mesh, size): ...

    for function in (inner, lambda mesh, size: None):
        with pytest.raises(MeasureError, match="define it at the top level of a file"):
            userfile.resolve(function)


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("/home/ann/jax/train.py", True),
        ("/home/ann/.local/lib/python3.11/site-packages/jax/_src/api.py", False),
        ("/usr/lib/python3/dist-packages/jaxlib/xla_client.py", False),
        (userfile.__file__, False),
        (os.__file__, False),
        ("<string>", False),
    ],
)
def test_whose_a_file_is(path, users):
    assert userfile.is_user_file(path) is users


def test_frames_of_a_library_alone_are_shown_rather_than_none():
    with pytest.raises(OSError, match="no/such/file") as caught:
        Path("/no/such/file").read_text()
    caught.value.__traceback__ = caught.tb.tb_next
    assert userfile.user_frames(caught.value)


class Mute(ValueError):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("plain"), "plain"),
        (ValueError("\x1b[31mred\tand \udcff"), r"\x1b[31mred\tand \udcff"),
        (Mute(), "(it cannot say what it is: RuntimeError)"),
    ],
)
def test_the_words_of_an_error_can_be_printed(error, words):
    assert userfile.words_of(error) == words


def test_long_words_keep_their_ends():
    words = userfile.words_of(ValueError("\n".join(map(str, range(1000))))).splitlines()
    assert words == [*map(str, range(8)), "... 984 more ...", *map(str, range(992, 1000))]


def test_a_recursion_keeps_the_ends_of_its_frames():
    def deep(left):
        if left == 0:
            raise ValueError("the end")
        deep(left - 1)

    with pytest.raises(ValueError, match="the end") as caught:
        deep(100)
    frames = userfile.user_frames(caught.value)
    assert len(frames) == 17
    assert frames[8] == "... 86 more ..."
