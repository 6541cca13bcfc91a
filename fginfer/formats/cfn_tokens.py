"""Tokens of toulbar2's .cfn files: relaxed JSON, in which quotes, commas and colons are optional."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.streams import open_checked

# Quoted, bracket, bare; what separates tokens last, and many at once: a search that fails at every blank is slow.
_TOKEN = re.compile(r'"([^"\n]*)"|([\[\]{}])|([^\s,:\[\]{}"]+)|[\s,:]{8,}')
_COMMENT = re.compile(rb"^#[^\n]*", re.MULTILINE)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_PLAIN = re.compile(r"[0-9.eE+\-\s,]*[\s,\]]")  # numbers one after the other, and what ends the last

_SEPARATORS = (b" ", b"\t", b'"', b",", b":", b"[", b"]", b"{", b"}")
_PIECE = 1 << 20  # bytes that are looked at together, and of the longest token


class Scanner:
    """Tokens with one of look-ahead; brackets are '[' and ']', whatever they look like in the file."""

    def __init__(self, path: Path, budget: Budget | None = None) -> None:
        self.path = path
        self.token = ""
        self._budget = budget
        self._text, self._line, self._counted, self._place = "", 1, 0, 0  # line breaks are counted up to `_counted`
        self._next = 0  # where the token after the one ahead is looked for
        self._scan = self._tokens()
        self.ahead: str | None = None
        self.quoted = False
        self.advance()

    @property
    def line(self) -> int:
        """The line of the token ahead: counted when asked for, which is seldom."""
        self._line += self._text.count("\n", self._counted, self._place)
        self._counted = self._place
        return self._line

    def _pieces(self) -> Iterator[bytes]:
        """The text without comments (but with their line breaks), cut at line ends; very long lines are cut between
        tokens."""
        begun = False
        rest, begins, comment = b"", True, False  # what is left; whether it begins a line; inside of a comment
        with open_checked(self.path, self._budget) as stream:
            while data := stream.read(_PIECE):
                if not begun:
                    data, begun = data.removeprefix(codecs.BOM_UTF8), True
                if comment:
                    end = data.find(b"\n")
                    if end < 0:
                        continue
                    data, comment, begins = data[end:], False, False
                data = rest + data
                cut = data.rfind(b"\n") + 1
                if not cut and begins and data.startswith(b"#"):
                    comment, rest = True, b""
                    continue
                if not cut:
                    odd = data.count(b'"') % 2
                    cut = data.rfind(b'"') if odd else max(map(data.rfind, _SEPARATORS)) + 1
                    if len(data) - cut > _PIECE:
                        self._place = len(self._text)
                        self.token = data[cut : cut + 57].decode("utf-8", "replace") + "..."
                        self.fail(f"a token of more than {_PIECE} bytes")
                text, rest = data[:cut], data[cut:]
                yield self._plain(text, begins)
                begins = text.endswith(b"\n") if text else begins
        yield self._plain(rest, begins)

    @staticmethod
    def _plain(text: bytes, begins: bool) -> bytes:
        if b"#" not in text:
            return text
        return _COMMENT.sub(b"", text) if begins else _COMMENT.sub(b"", b" " + text)

    def _tokens(self) -> Iterator[tuple[str, bool]]:
        for raw in self._pieces():
            self._place = len(self._text)
            self._line, self._counted, self._place, self._next = self.line, 0, 0, 0
            self._text = raw.decode("utf-8", "replace")
            if raw.isspace():
                continue
            while match := _TOKEN.search(self._text, self._next):
                quoted, bracket, bare = match.groups()
                self._place, self._next = match.span()
                if bracket:
                    yield "[" if bracket in "[{" else "]", False
                elif bare:
                    yield bare, False
                elif quoted is not None:
                    yield quoted, True
        self._place = len(self._text)

    def advance(self) -> None:
        self.ahead, self.quoted = next(self._scan, (None, False))
        self.token = "end of file" if self.ahead is None else self.ahead

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        shown = self.token if len(self.token) <= 60 else self.token[:57] + "..."
        token = "".join(c if c.isprintable() else "?" for c in shown)
        raise FormatError(message, str(self.path), self.line if line is None else line, token)

    def opening(self, what: str) -> None:
        if self.ahead != "[" or self.quoted:
            self.fail(f"expected {what}, in brackets")
        self.advance()

    def closed(self) -> bool:
        """Whether a bracket closes here (it is consumed)."""
        if self.ahead is None:
            self.fail("the file ends inside a bracket")
        if self.ahead == "]" and not self.quoted:
            self.advance()
            return True
        return False

    def word(self, what: str) -> str:
        word = self.ahead
        if word is None or (word in "[]" and not self.quoted):
            self.fail(f"expected {what}")
        self.advance()
        return word

    def keyword(self, *names: str) -> str | None:
        """One of the names, if it comes next (it is consumed)."""
        if self.ahead in names:
            found = self.ahead
            self.advance()
            return found
        return None

    def number(self, what: str) -> float:
        if self.ahead is None or not NUMBER.match(self.ahead):
            self.fail(f"expected {what}, a number")
        value = float(self.ahead)
        if not math.isfinite(value):
            self.fail(f"{what} is too large for a double")
        self.advance()
        return value

    def plain_numbers(self, most: int) -> list[float]:
        """Numbers that come next, as many as are at hand; none where anything calls for a look at each of them."""
        run = None if self.quoted or self.ahead is None else _PLAIN.match(self._text, self._place)
        if run is None:
            return []
        try:
            numbers = list(map(float, run[0][:-1].replace(",", " ").split()))
        except ValueError:
            return []
        if not numbers or len(numbers) > most or not all(map(math.isfinite, numbers)):
            return []
        self._next = run.end() - 1
        self.advance()
        return numbers

    def cost(self, what: str, forbids: float) -> float:
        """A number, or the infinity that forbids."""
        word = (self.ahead or "").lower()
        if word.lstrip("+-") not in ("inf", "infinity"):
            return self.number(what)
        value = float(word)
        if value != forbids:
            self.fail(f"{what} is {value}; only {forbids} forbids here, and nothing else is infinite")
        self.advance()
        return value
