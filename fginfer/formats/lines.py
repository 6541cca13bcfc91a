"""Text read line by line, for formats whose lines matter: the words of each line, and errors that name it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import NoReturn

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.streams import open_checked, whole_lines

_LONGEST = 1 << 26  # bytes of a line: without a limit, a small compressed file could fill the memory with one
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 400  # digits of a number that is kept exactly
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


class Lines:
    """The lines of a text that have words, without those that begin with one of `comments`; after `tail` in a line
    comes a remark. `fail`, `integer` and `number` raise FormatErrors for the line that was read last."""

    def __init__(self, path: Path, budget: Budget, comments: tuple[str, ...] = (), tail: str = "") -> None:
        self.path = path
        self.number_of_line = 0
        self._budget, self._comments, self._tail = budget, comments, tail
        self._lines = self._read()
        self._waiting: list[tuple[int, list[str]]] = []
        budget.fail = self.fail

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        with open_checked(self.path, self._budget) as stream:
            for first, text in whole_lines(stream, self.path, _LONGEST):
                data = text.removeprefix(codecs.BOM_UTF8) if first == 1 else text
                for k, line in enumerate(data.decode("utf-8", "replace").split("\n")):
                    shown = line.partition(self._tail)[0] if self._tail else line
                    words = shown.split()
                    if words and not words[0].startswith(self._comments or ("\0",)):
                        yield first + k, words

    def peek(self) -> list[str]:
        """The words of the next line, which stays; none at the end of the file."""
        if not self._waiting:
            found = next(self._lines, None)
            if found is None:
                return []
            self._waiting.append(found)
        return self._waiting[0][1]

    def next_or_none(self) -> list[str] | None:
        """The words of the next line."""
        if not self.peek():
            return None
        self.number_of_line, words = self._waiting.pop()
        return words

    def next(self, expected: str) -> list[str]:
        """The words of the next line; at the end of the file an error that says what was expected."""
        words = self.next_or_none()
        if words is None:
            raise FormatError(
                f"the file ends where {expected} was expected", str(self.path), self.number_of_line or 1, "end of file"
            )
        return words

    def __iter__(self) -> Iterator[list[str]]:
        while (words := self.next_or_none()) is not None:
            yield words

    def fail(self, message: str, word: str | None = None) -> NoReturn:
        """Raises a FormatError at this line, and at a word of it."""
        token = None if word is None else "".join(c if c.isprintable() else "?" for c in word[:60])
        raise FormatError(message, str(self.path), self.number_of_line or 1, token)

    def integer(self, word: str, expected: str, low: int = 0, high: int | None = None) -> int:
        """A word as a whole number within [low, high]."""
        if not _WHOLE.fullmatch(word):
            self.fail(f"expected {expected}, a whole number", word)
        value = int(word)
        if value < low or (high is not None and value > high):
            self.fail(f"expected {expected}, " + (f"at least {low}" if high is None else f"from {low} to {high}"), word)
        return value

    def number(self, word: str, expected: str) -> float:
        """A word as a finite number."""
        if not NUMBER.fullmatch(word):
            self.fail(f"expected {expected}, a number", word)
        value = float(word)
        if not isfinite(value):
            self.fail(f"{expected} is too large for a double", word)
        return value

    def exact(self, word: str, expected: str) -> int | Fraction:
        """A word as the number that its digits say, without rounding."""
        self.number(word, expected)
        if len(word) > _MOST_DIGITS or abs(int(word.lower().partition("e")[2] or 0)) > _MOST_DIGITS:
            self.fail(f"{expected} has too many digits", word)
        value = Fraction(word)
        return value.numerator if value.denominator == 1 else value

    def words(self, words: list[str], least: int, most: int | None, expected: str) -> list[str]:
        """The words of a line that must have so many."""
        if len(words) < least or (most is not None and len(words) > most):
            extra = words[most] if most is not None and len(words) > most else words[-1]
            self.fail(f"expected {expected}, not {len(words)} words", extra)
        return words
