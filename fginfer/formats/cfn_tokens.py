"""Tokens of toulbar2's .cfn files: relaxed JSON, in which quotes, commas and colons are optional."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from fginfer.errors import FormatError
from fginfer.formats.streams import open_binary

_TOKEN = re.compile(r'"([^"]*)"|([\[\]{}])|([^\s,:\[\]{}"]+)')
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")

_SEPARATORS = (b" ", b"\t", b'"', b",", b":", b"[", b"]", b"{", b"}")
_PIECE = 1 << 20  # bytes of a line that are looked at together, and of the longest token


class Scanner:
    """Tokens with one of look-ahead; brackets are '[' and ']', whatever they look like in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1
        self.token = ""
        self._scan = self._tokens()
        self.ahead: str | None = None
        self.quoted = False
        self.advance()

    def _tokens(self) -> Iterator[tuple[int, str, bool]]:
        """Line by line; very long lines in pieces, of which what may not be a whole token is left for the next."""
        number, rest, begins, comment = 1, b"", True, False
        with open_binary(self.path) as stream:
            while raw := stream.readline(_PIECE):
                ended = raw.endswith(b"\n")
                comment = raw.startswith(b"#") if begins else comment
                raw, rest, begins = b"" if comment else rest + raw, b"", ended
                if not ended:
                    cut = max(map(raw.rfind, _SEPARATORS)) + 1 if raw.count(b'"') % 2 == 0 else raw.rfind(b'"')
                    raw, rest = raw[:cut], raw[cut:]
                    if len(rest) > _PIECE:
                        self.line, self.token = number, rest[:57].decode("utf-8", "replace") + "..."
                        self.fail(f"a token of more than {_PIECE} bytes")
                yield from self._split(raw, number)
                number += ended
            yield from self._split(rest, number)

    def _split(self, raw: bytes, number: int) -> Iterator[tuple[int, str, bool]]:
        text = raw.decode("utf-8", "replace")
        for match in _TOKEN.finditer(text):
            quoted, bracket, bare = match.groups()
            if bracket:
                yield number, "[" if bracket in "[{" else "]", False
            else:
                yield number, bare or quoted, not bare

    def advance(self) -> None:
        self.line, self.ahead, self.quoted = next(self._scan, (self.line, None, False))
        self.token = "end of file" if self.ahead is None else self.ahead

    def fail(self, message: str) -> NoReturn:
        shown = self.token if len(self.token) <= 60 else self.token[:57] + "..."
        raise FormatError(message, str(self.path), self.line, "".join(c if c.isprintable() else "?" for c in shown))

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
