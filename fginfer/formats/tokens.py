"""Whitespace-separated text for the formats read in Python: tokens that know their line when it matters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.streams import open_checked

_PIECE = 1 << 20
_SPACES = (b" ", b"\n", b"\t", b"\r", b"\v", b"\f")
_LONGEST_WORD = 1 << 20  # bytes of a token: without a limit, a small compressed file could fill the memory with one


class _Piece(NamedTuple):
    """A piece of the text that ends between two tokens; the line on which it starts; its tokens."""

    text: bytes
    line: int
    words: list[bytes]

    def line_of(self, k: int) -> int:
        """The line of token k: found by a second look at the text, since only errors ask."""
        for n, match in enumerate(re.finditer(rb"\S+", self.text)):
            if n == k:
                return self.line + self.text.count(b"\n", 0, match.start())
        return self.line


class Tokens:
    """The tokens of a text file, one by one, with errors that name path, line and token."""

    def __init__(self, path: Path, budget: Budget | None = None) -> None:
        self.path = path
        self._budget = budget
        self._pieces = self._read()
        self._piece = _Piece(b"", 1, [])
        self._used = 0  # tokens of this piece
        self._end = 1  # the last line, once it is known
        self._done = False  # the end of the file was asked for more

    def _read(self) -> Iterator[_Piece]:
        line, rest, begun = 1, b"", False
        with open_checked(self.path, self._budget) as stream:
            while data := stream.read(_PIECE):
                data = (rest + data) if begun else data.removeprefix(codecs.BOM_UTF8)
                begun = True
                cut = max(data.rfind(space) for space in _SPACES) + 1
                text, rest = data[:cut], data[cut:]
                if len(rest) > _LONGEST_WORD:
                    shown = f"{rest[:57].decode('utf-8', 'replace')}..."
                    token = "".join(c if c.isprintable() else "?" for c in shown)
                    where = line + text.count(b"\n")
                    raise FormatError(f"a token of more than {_LONGEST_WORD} bytes", str(self.path), where, token)
                yield _Piece(text, line, text.split())
                line += text.count(b"\n")
        if rest:
            yield _Piece(rest, line, rest.split())
            line += rest.count(b"\n") + 1
        self._end = max(1, line - 1)

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the token that was read last."""
        if self._done:
            raise FormatError(message, str(self.path), self._end, "end of file")
        self._raise(message, self._piece, self._used - 1)

    def _raise(self, message: str, piece: _Piece, k: int) -> NoReturn:
        word = piece.words[k].decode("utf-8", "replace")
        shown = word if len(word) <= 60 else word[:57] + "..."
        token = "".join(c if c.isprintable() else "?" for c in shown)
        raise FormatError(message, str(self.path), piece.line_of(k), token)

    def _refill(self) -> bool:
        """Makes sure that an unused token is at hand; False at the end of the file."""
        while self._used == len(self._piece.words):
            piece = next(self._pieces, None)
            if piece is None:
                self._done = True
                return False
            self._piece, self._used = piece, 0
        return True

    def count(self, most: int) -> int:
        """The number of tokens that are left, `most` at most. They are kept, so that a pipe will do."""
        kept, left = [], len(self._piece.words) - self._used
        for piece in self._pieces:
            if piece.words:  # blanks without end need no room
                kept.append(piece)
            left += len(piece.words)
            if left > most:
                raise FormatError(f"more than {most} tokens, which cannot be meant", str(self.path))
        self._pieces = iter(kept)
        return left

    def peek(self) -> str:
        """The next token, which stays; "" at the end of the file."""
        return self._piece.words[self._used].decode("utf-8", "replace") if self._refill() else ""

    def next_or_none(self) -> str | None:
        if not self._refill():
            return None
        self._used += 1
        return self._piece.words[self._used - 1].decode("utf-8", "replace")

    def next(self, expected: str) -> str:
        """The next token; at the end of the file an error that says what was expected."""
        found = self.next_or_none()
        if found is None:
            self.fail(f"the file ends where {expected} was expected")
        return found

    def blocks(self, n: int, expected: str) -> Iterator[list[bytes]]:
        """The next n tokens as they are, in lists of many; `fail_in` names one of the last list."""
        while n > 0:
            if not self._refill():
                self.fail(f"the file ends where {expected} was expected")
            found = self._piece.words[self._used : self._used + n]
            self._used += len(found)
            n -= len(found)
            yield found

    def fail_in(self, message: str, block: list[bytes], k: int) -> NoReturn:
        """Raises a FormatError at token k of the block that was read last."""
        self._raise(message, self._piece, self._used - len(block) + k)

    def integer(self, expected: str, low: int = 0, high: int | None = None) -> int:
        """The next token as a whole number within [low, high]."""
        word = self.next(expected)
        value = _integer(word)
        if value is None:
            self.fail(f"expected {expected}, a whole number")
        if value < low or (high is not None and value > high):
            self.fail(f"expected {expected}, " + (f"at least {low}" if high is None else f"from {low} to {high}"))
        return value

    def end(self, after: str) -> None:
        """Checks that nothing is left."""
        if self.next_or_none() is not None:
            self.fail(f"extra text after {after}")


def _integer(token: str) -> int | None:
    digits = token[1:] if token[:1] in ("+", "-") else token
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) > 18:  # too large for anything here; no need to know how large
        return -(10**18) if token[0] == "-" else 10**18
    return int(digits) if token[0] != "-" else -int(digits)
