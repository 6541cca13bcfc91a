"""Reduction: presolve of one model, which may go on beside other work. Division: what is left, in parts, and the way
back from what is found in them to the whole."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from math import fsum, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.presolve import Presolved, presolve
from fginfer.crew import Task
from fginfer.portfolio.ledger import Ledger, joined
from fginfer.portfolio.part import Part
from fginfer.portfolio.threads import Threads

log = logging.getLogger("fginfer")


@dataclass
class Division:
    """What presolve has left of a model, in connected parts. None may be left of it."""

    model: Model  # the whole
    parts: list[Part]
    presolved: Presolved | None = None  # None: the parts are those of the whole itself
    constant: float = 0.0  # the constant of what is left, where no part has it
    least: float = -inf  # labelings that are no better may be missing in the parts
    unexpanded: float = -inf  # the best score that was noted without its labels

    @property
    def error(self) -> float:
        """How far the scores of the reduced model can be from those of the whole, by rounding in presolve."""
        return 0.0 if self.presolved is None else self.presolved.statistics.error

    @property
    def is_whole(self) -> bool:
        """One part, which is the model itself: scores are the same."""
        return len(self.parts) == 1 and self.parts[0].model is self.model

    @property
    def running(self) -> list[Part]:
        return [p for p in self.parts if p.running]

    def best(self, labels: bool = True) -> tuple[list[NDArray[np.int32]] | None, float, float]:
        """Labels of all parts (None: one has none), score and bound."""
        found = [p.best(labels) for p in self.parts]
        known = [x for x, _, _ in found if x is not None]
        score = self.constant + sum(score for _, score, _ in found)
        return known if len(known) == len(found) else None, score, self._bound([bound for _, _, bound in found])

    def credits(self) -> tuple[str | None, str | None]:
        """Who has the labelings and the bounds of `best`; where no part is left, presolve has both."""
        if not self.parts:
            return "presolve", "presolve"
        found, proved = zip(*(p.credits() for p in self.parts), strict=True)
        return joined(found), joined(proved)

    def _bound(self, bounds: list[float]) -> float:
        """From bounds of the parts: rounded up, inf while one is missing."""
        terms = [self.constant, *bounds]
        if max(terms) == inf or min(terms) == -inf:
            return inf if max(terms) == inf else max(-inf, self.least)
        return max(fsum(terms) + self.error + 2.0**-52 * fsum(map(abs, terms)), self.least)

    def into(self, cutoff: float) -> float:
        """What a labeling that is above the cutoff has at least in what is left."""
        return cutoff if self.error == 0 else nextafter(nextafter(cutoff - self.error, -inf), -inf)

    def lost_bound(self, lost: Part) -> float:
        """No labeling of this part is wanted: then none of the whole is above this."""
        return max(lost.bound + self.error if len(self.parts) == 1 else -inf, self.least)

    def at_least(self, scores: list[float]) -> float:
        """What labels of these scores in the parts have in the tables of the whole: no less, whatever was rounded."""
        if self.presolved is None and len(self.parts) == 1:
            return scores[0]
        terms = [self.constant, *scores]
        return -inf if min(terms) == -inf else fsum(terms) - self.error - 2.0**-51 * fsum(map(abs, terms))

    def unexpanded_score(self, score: float) -> float | None:
        """The score of labels that nobody puts together yet: what is certain of it, None if as much was known."""
        if score <= self.unexpanded:
            return None
        self.unexpanded = score
        return self.at_least([p.best(labels=False)[1] for p in self.parts])

    def expand(self, labels: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        """The labels of all parts, as labels of the original variables."""
        if len(labels) == 1 and self.parts[0].variables is None:
            reduced = labels[0]
        else:
            reduced = np.zeros(sum(map(len, labels)), np.int32)
            for part, own in zip(self.parts, labels, strict=True):
                assert part.variables is not None
                reduced[part.variables] = own
        return reduced if self.presolved is None else self.presolved.expand(reduced)

    def offer(self, labels: NDArray[np.int32], score: float, by: str | None = None) -> None:
        """A labeling of the whole, for all parts."""
        if self.is_whole:
            self.parts[0].offer(labels, score, by)
            return
        near = labels if self.presolved is None or not self.parts else self.presolved.restrict(labels)
        for part in self.parts:
            own = near if part.variables is None else np.ascontiguousarray(near[part.variables])
            part.offer(own, part.model.score(own), by)


class Reduction:
    """What presolve makes of a model depends on a score that it may take for granted, and not on when it begins."""

    def __init__(self, model: Model, threads: Threads, ledger: Ledger) -> None:
        self.allowed = -inf  # that score, once `begin` or `finish` has fixed it
        self.is_fixed = False
        self._model, self._threads, self._ledger = model, threads, ledger
        self._cancelled = np.zeros(1, np.int32)  # 1: its end is of no use any more
        self._task: Task[Presolved | None] | None = None
        self._presolved: Presolved | None = None
        self._is_known = False

    def begin(self, allowed: float) -> None:
        """Fixes what is known, and goes on beside other work if there is a thread for it."""
        self.allowed, self.is_fixed = allowed, True
        if self._threads.count > 1:
            self._task = self._threads.submit(self._job)

    def finish(self, allowed: float) -> Generator[None, None, Presolved | None]:
        """The reduced model; `allowed` counts where `begin` has not been called. None where memory is short."""
        if not self.is_fixed:
            self.allowed, self.is_fixed = allowed, True
        if not self._is_known:
            task, self._task = self._task, None
            wait = self._threads.aside(self._job) if task is None else self._threads.wait_for(task)
            self._presolved = yield from wait
            self._is_known = True
            if self._presolved is not None:
                done = self._presolved.statistics
                self._ledger.presolved(self._model.n_variables, self._model.n_factors, done)
        return self._presolved

    def forget(self) -> None:
        """What it has made belongs to the caller alone, from here on."""
        self._presolved = None

    def cancel(self) -> None:
        """What is under way ends soon."""
        self._cancelled[0] = 1

    def _job(self) -> Presolved | None:
        try:
            # What costs more than `allowed` leaves room for cannot be part of a better labeling.
            return presolve(self._model, cancelled=self._cancelled, least=self.allowed)
        except MemoryError as error:
            log.warning("no presolve: %s", error)
            return None
