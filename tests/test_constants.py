"""Every number that the core is steered by has a name, and a sentence beside it that says what it is, in which unit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CSRC = Path(__file__).resolve().parents[1] / "csrc"
# Definitions of constants: anonymous enums, static const numbers, macros that are numbers.
DEFINITIONS = (
    re.compile(r"^[ \t]*enum\s*\{(?P<names>[^}]*)\}\s*;", re.MULTILINE),
    re.compile(r"^[ \t]*static const (?:double|float|u?int\d+_t|int|size_t) (?P<names>[^;(\[]*=[^;]*);", re.MULTILINE),
    re.compile(r"^[ \t]*#\s*define (?P<names>[A-Z]\w*[ \t]+(?=[-(]*\.?\d)[^\n]*)$", re.MULTILINE),
)
NAMED = re.compile(r"\b([A-Z][A-Z0-9_]*)(?:\s*=\s*|[ \t]+)([^,}]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CODES = 16  # values below are flags and places that stand for nothing; several may share a line


class Constant(NamedTuple):
    """A name that stands for a number, with its line."""

    name: str
    value: str
    line: int


def constants(source: str) -> Iterator[Constant]:
    code = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    for definition in DEFINITIONS:
        for block in definition.finditer(code):
            for found in NAMED.finditer(block["names"]):
                if re.match(r"[-(]*(\d|INT64_C)", value := found[2].strip()):
                    yield Constant(found[1], value, code.count("\n", 0, block.start("names") + found.start()))


def without_a_sentence(source: str) -> list[str]:
    """Constants with no comment on their line or right above it."""
    lines = source.split("\n")
    return [c.name for c in constants(source) if "/*" not in lines[c.line] and "*/" not in lines[max(0, c.line - 1)]]


def sharing_a_line(source: str) -> list[str]:
    """Constants that stand on a line with others, codes aside: one sentence cannot be about all of them."""
    found = list(constants(source))
    each = Counter(c.line for c in found)
    return [c.name for c in found if each[c.line] > 1 and not re.fullmatch(rf"-?\d|1[0-{CODES - 11}]", c.value)]


def in_all_files(look: object) -> list[str]:
    assert callable(look)
    paths = sorted(CSRC.rglob("*.[ch]"))
    return [f"{path.relative_to(CSRC)}: {name}" for path in paths for name in look(path.read_text(encoding="utf-8"))]


def test_every_constant_has_a_sentence() -> None:
    assert in_all_files(without_a_sentence) == []


def test_every_constant_has_a_line_of_its_own() -> None:
    assert in_all_files(sharing_a_line) == []


def test_constants_are_found() -> None:
    source = (
        "/* of a table */\nenum { ROWS = 32 };\n\nenum { HALF = 50 };\nstatic const double GAIN = 0.5, LOSS = 2e3;\n"
        "#define ROOM (1 << 20)\n#define NAME other\nenum {\n    FIRST = -1, /* none */\n    SECOND = 1 << 3\n};\n"
        "    enum { NO = 0, YES = 1 }; /* flags */\n"
    )
    names = ["ROWS", "HALF", "FIRST", "SECOND", "NO", "YES", "GAIN", "LOSS", "ROOM"]
    assert [c.name for c in constants(source)] == names
    assert without_a_sentence(source) == ["HALF", "GAIN", "LOSS", "ROOM"]
    assert sharing_a_line(source) == ["GAIN", "LOSS"]
