"""Budget: memory and threads that reading one file may take. A few bytes must not cost a machine its memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import NoReturn

from fginfer.errors import FormatError, SettingsError
from fginfer.options import check_whole

GIB = 1 << 30
MOST_THREADS = 1024  # as in the core
MOST = 8 * GIB  # by default, never more than this
SHARE = 0.5  # by default, never more than this share of the machine's memory
UNLISTED, PER_BYTE = 256 << 20, 1000  # what a file describes without listing: so many bytes, or so many a byte of it
# What a compressed file may unpack to: so many bytes, or so many a byte of it. The models we know have 54 at
# most (gzip), a file of blanks 1030 (gzip), 7000 (xz) or 10^6 (bzip2).
UNPACKED_LEAST, UNPACKED = 128 << 20, 100


def _machine() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not everywhere
        return float(MOST)


def default_memory() -> float:
    """Bytes: what one thing may take where nobody says how much."""
    return min(MOST, SHARE * _machine())


class Budget:
    """Counts what a reader allocates; FormatError before the limit is passed.

    `max_memory` in bytes; None: half of the machine's memory, 8 GiB at most, and for tables that a file describes
    without listing their entries (default costs, formulas, compressed archives) no more than its size makes plausible.
    A reader that knows line and token sets `fail`, which raises the error there; `allows` is how a user can allow more.
    """

    def __init__(
        self,
        path: Path,
        max_memory: float | None = None,
        allows: str = "; read(..., max_memory={0}) or --max-memory {0} allows it",
        threads: int = 1,
    ) -> None:
        if max_memory is not None and (
            isinstance(max_memory, bool) or not isinstance(max_memory, Real) or not max_memory > 0
        ):
            raise SettingsError(f"max_memory must be a number of bytes above 0, not {max_memory!r}")
        check_whole("threads", threads)
        if not 1 <= threads <= MOST_THREADS:
            raise SettingsError(f"threads must be 1 to {MOST_THREADS}, not {threads}")
        self.path = path
        self.threads = threads
        self._allows = allows
        self._given = max_memory is not None
        self.most = float(max_memory) if max_memory is not None else min(MOST, SHARE * _machine())
        self._taken = 0.0
        self._unlisted = 0.0
        self._unpacked = 0.0
        self._packed: int | None = None  # the size of the file, once asked for
        self.fail: Callable[[str], NoReturn] = self._fail

    def fresh(self) -> Budget:
        """The same limits, of which nothing is used."""
        return Budget(self.path, self.most if self._given else None, self._allows, self.threads)

    def take(self, size: float, what: str) -> None:
        """`size` more bytes are about to be allocated for `what`."""
        self._taken += size
        self.hold(self._taken, what)

    def hold(self, size: float, what: str) -> None:
        """`size` bytes are held in all."""
        if size > self.most:
            self._refuse(size, what)

    def take_unlisted(self, size: float, what: str, per_byte: int = PER_BYTE) -> None:
        """The same for what a few bytes of the file can ask for."""
        self.take(size, what)
        self._unlisted += size
        if not self._given and self._unlisted > max(UNLISTED, per_byte * self._size()):
            self._refuse(self._unlisted, what)

    @property
    def room(self) -> float:
        """So many bytes can still be taken unlisted."""
        left = self.most - self._taken
        return left if self._given else min(left, max(UNLISTED, PER_BYTE * self._size()) - self._unlisted)

    def unpack(self, size: float) -> None:
        """`size` more bytes came out of a compressed file: they need not be kept, but looking at them takes time."""
        self._unpacked += size
        most = max(UNPACKED_LEAST, UNPACKED * self._size(), self.most if self._given else 0.0)
        if self._unpacked > most:
            self._fail(
                f"its {self._size()} bytes unpack to more than {most / 1e9:.2f} GB, which can hardly be meant; "
                "if it is, unpack the file first"
            )

    def _refuse(self, size: float, what: str) -> NoReturn:
        allowed = self._allows.format(int(size * 1.1) + 1)
        limit = f"than the {self.most / 1e9:.3g} GB allowed" if self._given else "than a file like this may"
        self.fail(f"{what} would take {size / 1e9:.3g} GB, more {limit}{allowed}")

    def _fail(self, message: str) -> NoReturn:
        raise FormatError(message, str(self.path))

    def _size(self) -> int:
        if self._packed is None:
            try:
                self._packed = self.path.stat().st_size
            except OSError:
                self._packed = 0
        return self._packed
