"""Text of strangers does nothing to a terminal or a page; models can be written under any name and read back."""

from __future__ import annotations

import io
import logging
import os
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fginfer
from fginfer.cli import main
from fginfer.html import html_table
from fginfer.log import logger, model_line
from fginfer.printable import printable
from fginfer.terminal import Terminal

ODD = "a\x1b]0;title\x07b\x9b2J\u202e\r"


def shows(text: str) -> bool:
    """Whether each character is shown: neither a control nor a mark of direction nor half of a character."""
    return all(
        unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") and not ("\u202a" <= c <= "\u202e") for c in text
    )


@given(st.text(st.characters()))
def test_everything_is_shown(text: str) -> None:
    assert shows(printable(text))
    assert shows(printable(text, lines=True).replace("\n", "").replace("\t", ""))
    if shows(text) and not any(unicodedata.category(c) == "Cf" for c in text):
        assert printable(text) == text


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert printable(os.fsdecode(b"a\xff")) == "a\\xff" if sys.platform != "win32" else True


def test_errors_and_logs_and_tables() -> None:
    assert shows(str(fginfer.FormatError("wrong", ODD + "\n")))
    assert shows(str(fginfer.SettingsError(f"there is no {ODD}")))
    assert shows(model_line(ODD, 1, 1, 1, 1))
    assert shows(html_table(ODD, {ODD: ODD}))
    stream = io.StringIO()
    logger.setLevel(logging.INFO)
    with Terminal(stream):
        logger.info(ODD)
    logger.setLevel(logging.NOTSET)
    assert shows(stream.getvalue().removesuffix("\n"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", ODD],
        ["info", ODD],
        [ODD],
        ["solve", "x", f"--{ODD}"],
        ["compare", ODD],
        ["compare", "-", "--methods", ODD],
    ],
)
def test_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 3
    assert shows(capsys.readouterr().err.replace("\n", ""))


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are any bytes on POSIX")
@pytest.mark.parametrize("name", [b"a\tb", b"a\rb", b"a\nb", b"a\xffb", b"a b", b"\x1b[2J", b".", "größe".encode()])
@pytest.mark.parametrize("suffix", [".wcsp", ".cfn", ".uai", ".npz"])
def test_models_under_odd_names(tmp_path: Path, name: bytes, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    graph = fginfer.FactorGraph([2, 2])
    graph.add_factor([0, 1], [[-1.0, 0.0], [0.0, -3.0]])
    path = tmp_path / os.fsdecode(name + suffix.encode())
    fginfer.write(graph, path)
    for text in (path, str(path)):
        assert fginfer.read(text).score([1, 1]) == -3.0
    assert main(["solve", str(path)]) == 0
    said = capsys.readouterr()
    assert shows((said.out + said.err).replace("\n", ""))


def test_names_in_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = fginfer.FactorGraph(variables={ODD: [ODD, "b"]})
    path = tmp_path / "m.npz"
    fginfer.write(graph, path)
    (tmp_path / "m.MPE").write_text("MPE\n1 0")
    for arguments in (
        ["solve", path],
        ["solve", path, "--k-best", "2"],
        ["info", path],
        ["check", path, tmp_path / "m.MPE"],
    ):
        assert main([str(argument) for argument in arguments]) == 0
        said = capsys.readouterr()
        assert shows((said.out + said.err).replace("\n", ""))
    assert shows(fginfer.solve(graph)._repr_html_())


def test_text_in_place_of_a_name_is_said_to_be_text() -> None:
    with pytest.raises(fginfer.FormatError, match="this is text, not the name of a file"):
        fginfer.read("MARKOV\n1\n2\n0\n")
