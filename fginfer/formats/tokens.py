"""Whitespace-separated text for the small files read in Python: tokens that know their line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from fginfer.errors import FormatError
from fginfer.formats.streams import open_binary

_MOST_DIGITS = 18


class Tokens:
    """The tokens of a text file, one by one, with errors that name path, line and token.

    `comment` starts a comment that runs to the end of its line.
    """

    def __init__(self, path: Path, comment: str | None = None) -> None:
        self.path = path
        self.line = 1
        self.token = ""
        self._comment = comment
        self._tokens = self._scan()

    def _scan(self) -> Iterator[tuple[int, str]]:
        number = 0
        with open_binary(self.path) as stream:
            for number, raw in enumerate(stream, 1):
                text = raw.decode("utf-8", "replace")
                if self._comment is not None:
                    text = text.split(self._comment, 1)[0]
                for token in text.split():
                    yield number, token
        self.line = max(number, 1)

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the current token."""
        shown = self.token if len(self.token) <= 60 else self.token[:57] + "..."
        raise FormatError(message, str(self.path), self.line, "".join(c if c.isprintable() else "?" for c in shown))

    def next(self, expected: str) -> str:
        """The next token; at the end of the file an error that says what was expected."""
        found = self.next_or_none()
        if found is None:
            self.token = "end of file"
            self.fail(f"the file ends where {expected} was expected")
        return found

    def next_or_none(self) -> str | None:
        for self.line, self.token in self._tokens:
            return self.token
        return None

    def integer(self, expected: str, low: int = 0, high: int | None = None) -> int:
        """The next token as a whole number within [low, high]."""
        token = self.next(expected)
        digits = token[1:] if token[:1] in "+-" else token
        if not (digits.isascii() and digits.isdigit()):
            self.fail(f"expected {expected}, a whole number")
        value = int(token) if len(digits) <= _MOST_DIGITS else (-(10**18) if token[0] == "-" else 10**18)
        if value < low or (high is not None and value > high):
            self.fail(f"expected {expected}, " + (f"at least {low}" if high is None else f"from {low} to {high}"))
        return value

    def end(self, after: str) -> None:
        """Checks that nothing is left."""
        if self.next_or_none() is not None:
            self.fail(f"extra text after {after}")
