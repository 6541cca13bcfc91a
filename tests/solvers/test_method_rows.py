"""One table of methods, options and counters: fginfer_methods.def is what there is, and what is taken."""

from __future__ import annotations

import argparse
import sys
from math import inf, nan
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from cffi import FFI

import fginfer
from fginfer import FactorGraph, SettingsError
from fginfer.cli import main, make_parser
from fginfer.commands.solve import _complete_options
from fginfer.core import rows
from fginfer.core.door import ffi, lib, new_error
from fginfer.core.rows import OptionRow, counter_rows, method_rows, option_rows
from fginfer.core.solver import native_methods
from fginfer.methods import available_methods, explained
from fginfer.options import Options

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "csrc" / "include"
NATIVE = [row for row in option_rows() if row.methods != ("auto",)]
SMALL = FactorGraph([2, 2])
SMALL.add_factor([0, 1], [[0.0, -1.0], [-1.0, -2.0]])
FOREIGN = [(m, o) for m in available_methods() for o in option_rows() if m not in o.methods]


def another_number(row: OptionRow) -> float:
    """A number that the option may have, and that is not its default."""
    if row.least != row.standard:
        return row.least
    return (row.least + row.below) / 2 if row.below < inf else row.least + 1


def a_value(option: OptionRow) -> Any:
    """One that is not the default, and that a method that reads it takes."""
    return {
        "number": another_number(option),
        "choice": option.choices[-1:] and option.choices[-1],
        "flag": False,
        "numbers": {},
    }[option.kind]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.syspath_prepend(str(ROOT / "csrc"))
    import build_cffi
    import method_tables

    yield argparse.Namespace(docs=method_tables, build=build_cffi)
    sys.modules.pop("method_tables"), sys.modules.pop("build_cffi")


def test_the_table_lists_the_methods_that_there_are() -> None:
    assert {row.name for row in method_rows()} == set(available_methods())
    assert all(row.text and row.use for row in method_rows())
    assert {name for row in (*option_rows(), *counter_rows()) for name in row.methods} <= set(available_methods())


def test_type_checkers_know_the_options_of_the_table() -> None:
    hints = get_type_hints(Options)
    assert list(hints) == [row.name for row in option_rows()]
    for row in option_rows():
        if row.kind == "choice":
            assert get_args(hints[row.name]) == row.choices
        else:
            assert hints[row.name] == {"number": float, "flag": bool}.get(row.kind, hints[row.name])


@pytest.mark.parametrize("row", option_rows(), ids=lambda row: row.name)
def test_its_readers_take_an_option(row: OptionRow) -> None:
    for method in row.methods:
        assert fginfer.solve(SMALL, method, **{row.name: a_value(row)}).score == 0.0


@pytest.mark.parametrize(("method", "row"), FOREIGN, ids=lambda x: getattr(x, "name", x))
def test_an_option_is_an_error_where_nobody_reads_it(method: str, row: OptionRow) -> None:
    with pytest.raises(
        SettingsError, match=f"'{row.name}' for method {method};.* option of {' and '.join(row.methods)}"
    ):
        fginfer.solve(SMALL, method, **{row.name: a_value(row)})


@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row.name)
def test_the_core_refuses_it_too(row: OptionRow) -> None:
    for method, number in native_methods().items():
        settings, error = ffi.new("fgi_settings *", lib.fgi_settings_default()), new_error()
        settings.method = number
        setattr(settings, row.name, another_number(row) if row.kind == "number" else len(row.choices) - 1)
        assert (lib.fgi_settings_check(settings, error) == lib.FGI_OK) == (method in row.methods)
        if method not in row.methods:
            assert f"{method} does not read {row.name}" in ffi.string(error.message).decode()


@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row.name)
def test_values_out_of_range_are_named(row: OptionRow) -> None:
    wrong = [row.least - 1, row.below, nan, inf] if row.kind == "number" else [-1, len(row.choices), "no-such-word"]
    for value in wrong:
        with pytest.raises(SettingsError, match=f"{row.name} must be"):
            fginfer.solve(SMALL, row.methods[0], **{row.name: value})


def test_the_command_line_refuses_it_before_the_model_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "no-such-file.uai", "--method", "bnb", "--option", "damping=0.3"]) == 3
    assert "it is an option of bp" in capsys.readouterr().err


@pytest.mark.parametrize("method", native_methods())
def test_methods_count_what_the_table_says(method: str) -> None:
    rng = np.random.default_rng(3)
    graph = FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 2)), rng.normal(size=(2, 2)))
    graph.add_factor([0, 1, 5], rng.normal(size=(2, 2, 2)))
    if method in ("cycles", "sdp", "assignment"):
        graph = FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 2)), rng.normal(size=(2, 2)))
    limit = None if method in ("bnb", "edac", "dolls", "sdp", "assignment") else 20
    told = fginfer.solve(graph, method, max_iterations=limit, gap=0.0).statistics
    assert list(told) == [row.name for row in counter_rows()]
    for row in counter_rows():
        if row.methods and method not in row.methods:
            assert told[row.name] in (0, inf), row.name
    if method in ("bnb", "edac", "dolls", "sdp", "assignment"):
        assert told["nodes"] > 0 == told["oracle_calls"]


NEW = 'FGI_NUMBER(novel, "icm", 0.25, 0, 1, "a row that is new, (with) brackets")\n'
NEWER = 'FGI_COUNTER(int64_t, wonders, "icm", "what is new")\nFGI_METHOD(NOVEL, novel, 99, "a method", "never")\n'


def test_a_row_is_all_that_a_header_needs(tables: Any) -> None:
    table = (
        (INCLUDE / "fginfer_methods.def").read_text().replace("#undef FGI_METHOD", NEW + NEWER + "#undef FGI_METHOD")
    )
    new = FFI()
    new.cdef(tables.build.expanded((INCLUDE / "fginfer.h").read_text(), {"fginfer_methods.def": table}))
    assert new.new("fgi_settings *", {"novel": 0.5}).novel == 0.5
    assert new.new("fgi_info *", {"wonders": 7}).wonders == 7
    assert new.typeof("fgi_method").relements["FGI_NOVEL"] == 99
    old = [f for f, _ in ffi.typeof("fgi_settings").fields]
    assert [f for f, _ in new.typeof("fgi_settings").fields if f != "novel"] == old


def test_a_row_is_all_that_python_needs(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    new = OptionRow("novel", ("icm", "trws"), "choice", 0, 0, 0, ("auto", "old", "new"), "what is new")
    more = (*option_rows(), new)
    monkeypatch.setattr(rows, "option_rows", lambda: more)
    monkeypatch.setattr("fginfer.methods.option_rows", lambda: more)
    monkeypatch.setattr(tables.docs, "option_rows", lambda: more)
    with pytest.raises(SettingsError, match=r"'novel' for method bp.*option of icm and trws"):
        fginfer.solve(SMALL, "bp", novel="new")
    with pytest.raises(SettingsError, match="novel must be one of auto, old, new, not 'newest'"):
        fginfer.solve(SMALL, "icm", novel="newest")
    assert "| `icm`, `trws` | `novel` | `'auto'` | auto, old, new | what is new |" in tables.docs.options()
    assert "icm, trws: what is new (auto, old, new; default auto)" in explained(200)
    assert "novel=old" in _complete_options(argparse.Namespace(method="trws"))
    assert "novel=old" not in _complete_options(argparse.Namespace(method="bp"))


def test_help_and_the_manual_have_every_row(tables: Any) -> None:
    commands = next(a for a in make_parser()._actions if isinstance(a.choices, dict)).choices
    said = " ".join(commands["solve"].format_help().split())
    for row in (*method_rows(), *option_rows()):
        assert f" {row.name} " in said
        assert row.text.split(":")[0] in said
    start = ROOT / "docs" / "start"
    pages = {"methods.md": tables.docs.methods, "options.md": tables.docs.options, "results.md": tables.docs.counters}
    for page, table in pages.items():
        name = next(name for name, made in tables.docs.TABLES.items() if made is table)
        assert f"```{{include}} {name}\n" in (start / page).read_text()
    assert all(f"| `{row.name}` |" in tables.docs.methods() for row in method_rows())
    assert all(f"| `{row.name}` |" in tables.docs.options() for row in option_rows())
    assert all(f"| `{row.name}` |" in tables.docs.counters() for row in counter_rows())
