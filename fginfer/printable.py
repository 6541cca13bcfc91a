"""Text of strangers, made safe to print: names of files and words of files may hold anything, commands to a terminal
among it."""

from __future__ import annotations

import re

# Control characters, marks that turn the direction of writing, separators of lines, and halves of characters (bytes of
# a name that are no UTF-8).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def printable(text: object, lines: bool = False) -> str:
    r"""The text with an escape in place of every character that a terminal or a page would obey instead of show.

    With `lines`, line ends and tabs stay: for messages of several lines. A name has none, so there they are escaped.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    >>> printable("two\nlines\r", lines=True)
    'two\nlines\\r'
    """
    return (_UNSAFE_IN_LINES if lines else _UNSAFE).sub(_escape, str(text))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
