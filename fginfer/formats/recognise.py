"""Which format a file seems to be, from how it begins: for names that do not tell, and for hints in errors."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fginfer.errors import FginferError
from fginfer.formats.streams import open_binary

_LOOKED_AT = 1 << 16  # bytes
_MAGIC = {b"\x89HDF\r\n\x1a\n": "opengm", b"PK\x03\x04": "npz"}
_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2"}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# The first of these that is found in the text, without blank lines and blanks around lines, says what it is. None of
# them may look at the same characters again and again: a file of blanks or of anything else must not take long.
_SIGNS: list[tuple[str, re.Pattern[str]]] = [
    ("uai", re.compile(r"\A(MARKOV|BAYES)\b")),
    ("xcsp", re.compile(r"\A<[^\0]*?<instance\b|\A<instance\b")),
    ("xmlbif", re.compile(r"\A<[^\0]*?<BIF\b|\A<BIF\b")),
    ("bif", re.compile(r"\A(?:(?://|/\*|#).*\n)*network \S+ ?\{|^variable \S+ ?\{\n?type ", re.M)),
    ("cfn", re.compile(r"\A(?:#.*\n)*[{\[][ \n]*\"?problem\"?|mustbe\"?[ :]*\"?[<>]")),
    ("qubo", re.compile(r"^p +qubo ", re.M)),
    ("cnf", re.compile(r"^p +cnf ", re.M)),
    ("wcnf", re.compile(r"^p +wcnf |\A(?:c.*\n)*(?:\d+(?: -?\d+)* 0\n)*h(?: -?\d+)* 0$", re.M)),
    ("dd", re.compile(r"^p \d+ \d+ \d+ \d+$", re.M)),
    ("wbo", re.compile(r"^soft ?:", re.M)),
    ("lp_solve", re.compile(r"\A/[*/]|^(?:int|bin|sec|sin|free) [^;]*;", re.M)),
    ("opb", re.compile(r"\A\* *#variable|^(?:min|max) ?:|= ?[+-]?\d+ ?;$", re.M)),
    ("fg", re.compile(r"^(?:XOR|XOROUT|ATMOSTONE|OR|OROUT|ANDOUT|BUDGET|KNAPSACK|PAIR|DENSE) \d", re.M)),
    ("qplib", re.compile(r"\A(?:[!#%].*\n)*.*\n[LDCQ][CBMIG][NBLDCQ]\b.*\n(?:minimi|maximi)[sz]e", re.I)),
    ("mps", re.compile(r"^ROWS$", re.M)),
    ("lp", re.compile(r"^(?:minimi[sz]e|maximi[sz]e|minimum|maximum|min|max)(?: [^;]*)?$", re.M | re.I)),
    ("wcsp", re.compile(r"\A\S+ \d+ \d+ \d+ \d+$", re.M)),
]


def _beginning(path: Path) -> bytes:
    if not os.path.isfile(path):  # a pipe would lose what is looked at
        return b""
    try:
        with open_binary(path) as stream:
            head: bytes = stream.read(_LOOKED_AT)
    except FginferError:
        return b""
    return head


def recognised(path: Path) -> str | None:
    """The name of the format that the file seems to have; None where nothing is sure."""
    return by_content(_beginning(path))


def by_content(head: bytes) -> str | None:
    """The same for the first bytes of a text."""
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if b"\0" in head:
        return None
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    lines = [line.split() for line in text.split("\n") if line and not line.isspace()]
    numbers = _of_numbers([line for line in lines if line[0][0] not in "#%"], len(head) < _LOOKED_AT)
    if numbers is not None:
        return numbers
    flat = "\n".join(map(" ".join, lines))
    return next((name for name, sign in _SIGNS if sign.search(flat)), None)


def _of_numbers(lines: list[list[str]], whole: bool) -> str | None:
    """Which of the formats of numbers alone: entries of a matrix line by line, or two square matrices."""
    if len(lines) < 2 or len(lines[0]) > 2 or not all(_WHOLE.fullmatch(w) and len(w) < 10 for w in lines[0]):
        return None
    body = lines[1:] if whole else lines[1:-1]
    n = int(lines[0][0])
    entries = len(lines[0]) == 2 and all(
        len(line) == 3 and all(_WHOLE.fullmatch(w) and 1 <= int(w[:18]) <= n for w in line[:2]) for line in body
    )
    if entries and (not whole or len(body) == int(lines[0][1])):
        return "biqmac" if any(line[0] == line[1] for line in body) else "rudy"
    first = next(iter(body), [])
    listed = sum(map(len, body))
    if all(_WHOLE.fullmatch(w) for w in first) and (listed == 2 * n * n if whole else len(first) == n):
        return "qaplib"
    return None


def packed(path: Path) -> str | None:
    """The compression that the bytes of a file show, and its name does not."""
    if not os.path.isfile(path) or path.suffix.lower() in _PACKED.values():
        return None
    head = _beginning(path)
    return next((suffix for magic, suffix in _PACKED.items() if head.startswith(magic)), None)
