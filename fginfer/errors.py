"""Everything fginfer raises. Limits and stalls are never errors: they return a result with a status."""

from __future__ import annotations

from fginfer.printable import printable


class FginferError(Exception):
    """Base of all errors raised by fginfer. Its text is safe to print, whatever the names and words in it hold."""

    def __str__(self) -> str:
        return printable(super().__str__(), lines=True)


class ModelError(FginferError, ValueError):
    """A model is malformed: NaN, a table of the wrong size, an unknown variable, a label out of range."""


class DataError(ModelError):
    """Training or test data are malformed: NaN, ragged shapes, an empty sequence, an unknown label."""


class SettingsError(FginferError, ValueError):
    """A setting is out of range or does not fit the method."""


class SolverError(FginferError):
    """A solver cannot take this model (arity, size) or ran out of memory."""


class FormatError(FginferError):
    """A file cannot be read or written: `message`. `path`, `line` (1-based, None if unknown) and `token` say where."""

    def __init__(
        self, message: str, path: str | None = None, line: int | None = None, token: str | None = None
    ) -> None:
        self.message, self.path, self.line, self.token = message, path, line, token
        where = printable(path or "")
        if line is not None:
            where += f", line {line}" if where else f"line {line}"
        if token is not None:
            where += f" at {token!r}" if where else f"at {token!r}"
        super().__init__(f"{where}: {message}" if where else message)


class MissingFileError(FormatError, FileNotFoundError):
    """There is no such file."""


class UnwritableError(FormatError, OSError):
    """A file cannot be written: no space, no permission."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a call that had an answer to some part: `found` holds it, as the call would have returned it."""

    def __init__(self, found: object) -> None:
        self.found = found
        super().__init__()
