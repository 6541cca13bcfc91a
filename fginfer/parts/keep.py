"""Keeper: the last kept round, part by part on disk, so that no more than one part's state is in memory."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import load_arrays, write_arrays
from fginfer.core import clock
from fginfer.errors import FormatError, SettingsError, UnwritableError
from fginfer.log import logger
from fginfer.parts.rules import RULES
from fginfer.replacing import replacing

_VERSION = 2
_LATEST = "latest.npz"


@dataclass
class Kept:
    """What the loop knows after a round. The parts' states are beside it."""

    number: int
    join_at: int
    window_at: int
    window_bound: float
    kick: float
    last_kick: float
    pace: float
    width: int
    misses: int
    bound: float
    score: float
    counts: list[NDArray[np.int64]]
    labels: list[NDArray[Any]] | None


class Keeper:
    """Keeps rounds in a folder of its own that goes in the end, or in one that is given and stays.

    Parts go on from a state as they would have without it, so which rounds are kept changes no answer, and time may
    choose them: slow rounds are kept more often, and keeping takes no more than a small part of the time."""

    def __init__(self, folder: str | None, every: int | None, mark: dict[str, int], resume: bool = False) -> None:
        self._every, self._mark, self._stays = every, mark, folder is not None
        self.kept: Kept | None = None
        self._kept_at, self._took = -1.0, 0.0  # -1: no round has been done yet
        self._has_failed = False
        try:
            self._folder = Path(mkdtemp(prefix="fginfer-parts-")) if folder is None else Path(folder)
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableError(f"cannot be made ({error.strerror or error})", str(folder)) from None
        there = (self._folder / _LATEST).exists()
        if resume and there:
            self.kept = self._load()
        elif there:
            what = "resume=True goes on from it (--resume), or give another folder"
            raise SettingsError(f"{self._folder} holds the checkpoint of a run; {what}")
        elif resume and not there:
            self.kept = None  # nothing was kept before the run ended: it begins anew

    def is_due(self, number: int) -> bool:
        """Whether this round is one to keep. What follows, up to `seal`, counts as the time that takes."""
        now = clock.now()
        if self._kept_at < 0:  # making and shipping parts is not work that could be lost
            self._kept_at = now
        since = now - self._kept_at
        if self._every is not None:
            due = number % self._every == 0
        else:
            due = number % RULES.keep_every == 0 or since > RULES.keep_seconds
            due = due and since > RULES.keep_share * self._took
        if due:
            self._kept_at = now
        return due

    def put(self, number: int, part: int, state: NDArray[np.float64]) -> None:
        """The state of a part after a round."""
        self._write(self._state(number, part), {"state": state, "mark": np.array([number, part])})

    def seal(self, kept: Kept) -> None:
        """All parts are there: from now on this is the round to go back to."""
        arrays: dict[str, Any] = {
            "round": np.array([_VERSION, kept.number, kept.join_at, kept.window_at, kept.width, kept.misses]),
            "values": np.array([kept.window_bound, kept.kick, kept.last_kick, kept.pace, kept.bound, kept.score]),
            "mark": np.array([self._mark[name] for name in sorted(self._mark)], np.int64),
        }
        arrays |= {f"counts{p}": counts for p, counts in enumerate(kept.counts)}
        arrays |= {f"labels{p}": labels for p, labels in enumerate(kept.labels or [])}
        self._write(self._folder / _LATEST, arrays)
        old, self.kept = self.kept, kept
        if old is not None and old.number != kept.number:
            self._drop(old.number, len(kept.counts))
        self._end()

    def give_up(self, number: int, n_parts: int, error: UnwritableError) -> None:
        """A round that could not be kept leaves no files: the one before it is the round to go back to."""
        if self.kept is None or self.kept.number != number:
            self._drop(number, n_parts)
        if not self._has_failed:
            logger.warning(f"the checkpoint was not written, the solve goes on: {error}")
        self._has_failed = True
        self._end()

    def _drop(self, number: int, n_parts: int) -> None:
        for p in range(n_parts):
            with suppress(OSError):
                self._state(number, p).unlink()

    def _end(self) -> None:
        """The time that keeping has taken."""
        now = clock.now()
        self._kept_at, self._took = now, now - self._kept_at

    def state(self, part: int, size: int) -> NDArray[np.float64]:
        """The state of a part in the kept round."""
        assert self.kept is not None
        path = self._state(self.kept.number, part)
        arrays = load_arrays(path, "a checkpoint", float("inf"), lambda arrays: True)
        try:
            state = arrays["state"]
            if arrays["mark"].tolist() != [self.kept.number, part] or state.shape != (size,):
                raise ValueError("it is of another part or round")
        except (KeyError, ValueError) as error:
            raise FormatError(f"not a checkpoint of this run ({error})", str(path)) from None
        return np.asarray(state, np.float64)

    def close(self) -> None:
        """What was kept for faults alone goes."""
        if not self._stays:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _state(self, number: int, part: int) -> Path:
        return self._folder / f"round{number}-part{part}.npz"

    def _write(self, path: Path, arrays: dict[str, Any]) -> None:
        try:
            with replacing(path) as stream:
                write_arrays(stream, arrays)
        except OSError as error:
            raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from None

    def _load(self) -> Kept:
        path = self._folder / _LATEST
        arrays = load_arrays(path, "a checkpoint", float("inf"), lambda arrays: True)
        try:
            version, *counted = (int(x) for x in arrays["round"])
            if version != _VERSION:
                raise ValueError("it was written by another fginfer")
            number, join_at, window_at, width, misses = counted
            window, kick, last_kick, pace, bound, score = (float(x) for x in arrays["values"])
            found = dict(zip(sorted(self._mark), arrays["mark"].tolist(), strict=True))
        except (KeyError, ValueError, TypeError) as error:
            raise FormatError(f"not a checkpoint, or damaged ({error})", str(path)) from None
        for name, value in self._mark.items():
            if found[name] != value:
                raise SettingsError(f"the checkpoint {path} is of another run: {name} was {found[name]}, not {value}")
        n = self._mark["parts"]
        counts = [arrays[f"counts{p}"] for p in range(n)]
        labels = [arrays[f"labels{p}"] for p in range(n)] if "labels0" in arrays else None
        return Kept(
            number, join_at, window_at, window, kick, last_kick, pace, width, misses, bound, score, counts, labels
        )
