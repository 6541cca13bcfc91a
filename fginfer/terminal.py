"""What people see while a command runs: a log, and on a terminal a line that moves (with rich if it is installed)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import IO, Any

from fginfer.log import logger, row
from fginfer.printable import printable
from fginfer.result import Progress


class Terminal(logging.Handler):
    """A log handler that also owns the status line at the bottom of a terminal."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__()
        self.stream = sys.stderr if stream is None else stream
        self.moving = self.stream.isatty()
        self._console: Any = None
        self._status: Any = None
        self._shown = False
        self._silent = False
        if self.moving:
            try:
                from rich.console import Console
            except ImportError:
                pass
            else:
                self._console = Console(file=self.stream, highlight=False)

    def __enter__(self) -> Terminal:
        self._level = logger.level  # given back at the end: main() may be called from a program that has its own
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        logger.removeHandler(self)
        logger.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        self._try(lambda: self._write(printable(record.getMessage(), lines=True)))

    def _try(self, write: Callable[[], None]) -> None:
        """A log that cannot be written (a full disk, a reader that has gone) must not end what it reports on."""
        if self._silent:
            return
        try:
            write()
        except (OSError, ValueError):
            self._silent = True

    def _write(self, text: str) -> None:
        if self._console is not None:
            self._console.print(text, markup=False, soft_wrap=True)
            return
        self._clear()
        self.stream.write(text + "\n")
        self.stream.flush()

    def show(self, progress: Progress) -> None:
        """The moving line; nothing where the log goes to a file."""
        if self.moving:
            self._try(lambda: self._show(row(progress)))

    def _show(self, text: str) -> None:
        if self._console is not None:
            if self._status is None:
                self._status = self._console.status(text, spinner="dots")
                self._status.start()
            else:
                self._status.update(text)
            return
        self.stream.write(f"\r{text}\x1b[K")
        self.stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Takes the moving line away."""
        self._try(self._clear)

    def _clear(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self._shown = False
