"""Whitespace-separated text for the small files read in Python: tokens that know their line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import FormatError
from fginfer.formats.streams import open_binary


class Tokens:
    """The tokens of a text file, one by one or in blocks, with errors that name path, line and token."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1
        self.token = ""
        self._lines = self._scan()
        self._row: list[str] = []  # the tokens of the current line, and how many of them are used
        self._used = 0
        self._block: list[tuple[int, int, list[str]]] = []  # of the last block: line, first token, tokens

    def _scan(self) -> Iterator[list[str]]:
        with open_binary(self.path) as stream:
            for self.line, raw in enumerate(stream, 1):
                row = raw.decode("utf-8", "replace").split()
                if row:
                    yield row

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the current token."""
        shown = self.token if len(self.token) <= 60 else self.token[:57] + "..."
        raise FormatError(message, str(self.path), self.line, "".join(c if c.isprintable() else "?" for c in shown))

    def _refill(self) -> bool:
        """Makes sure that an unused token is at hand; False at the end of the file."""
        if self._used < len(self._row):
            return True
        self._row = next(self._lines, [])
        self._used = 0
        return bool(self._row)

    def next_or_none(self) -> str | None:
        if not self._refill():
            return None
        self.token = self._row[self._used]
        self._used += 1
        return self.token

    def next(self, expected: str) -> str:
        """The next token; at the end of the file an error that says what was expected."""
        found = self.next_or_none()
        if found is None:
            self.token = "end of file"
            self.fail(f"the file ends where {expected} was expected")
        return found

    def integer(self, expected: str, low: int = 0, high: int | None = None) -> int:
        """The next token as a whole number within [low, high]."""
        value = _integer(self.next(expected))
        if value is None:
            self.fail(f"expected {expected}, a whole number")
        if value < low or (high is not None and value > high):
            self.fail(f"expected {expected}, " + (f"at least {low}" if high is None else f"from {low} to {high}"))
        return value

    def integers(self, n: int, expected: str) -> NDArray[np.int64]:
        """The next n tokens as whole numbers. The array grows with the file, whatever n is."""
        self._block = []
        words: list[str] = []
        while len(words) < n:
            if not self._refill():
                self.token = "end of file"
                self.fail(f"the file ends where {expected} were expected")
            part = self._row[self._used : self._used + n - len(words)]
            self._block.append((self.line, len(words), part))
            self._used += len(part)
            words += part
        try:
            return np.array(words, "U").astype(np.int64) if words else np.zeros(0, np.int64)
        except (ValueError, OverflowError):
            bad = next((k for k, word in enumerate(words) if _integer(word) is None or len(word) > 18), 0)
            self.fail_back(bad, f"expected {expected}, whole numbers below 10^18")

    def fail_back(self, k: int, message: str) -> NoReturn:
        """Raises a FormatError at token k of the last block."""
        for line, first, part in self._block:
            if first <= k < first + len(part):
                self.line, self.token = line, part[k - first]
        self.fail(message)

    def end(self, after: str) -> None:
        """Checks that nothing is left."""
        if self.next_or_none() is not None:
            self.fail(f"extra text after {after}")


def _integer(token: str) -> int | None:
    digits = token[1:] if token[:1] in "+-" else token
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) > 18:  # too large for anything here; no need to know how large
        return -(10**18) if token[0] == "-" else 10**18
    return int(token)
