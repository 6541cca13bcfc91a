"""Division: a model in parts, and the way back from what is found in them to the whole."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.presolve import Presolved
from fginfer.portfolio.part import Part


@dataclass
class Division:
    """What presolve has left of a model, in connected parts. None may be left of it."""

    model: Model  # the whole
    parts: list[Part]
    presolved: Presolved | None = None  # None: the parts are those of the whole itself
    constant: float = 0.0  # of what is left, where no part has it
    least: float = -inf  # labelings that are no better may be missing in the parts
    unexpanded: float = -inf  # the best score that was noted without its labels

    @property
    def error(self) -> float:
        """How far scores of what is left can be from those of the whole."""
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
        """Of labels that nobody puts together yet: what is certain of it, None if as much was known."""
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

    def offer(self, labels: NDArray[np.int32], score: float) -> None:
        """A labeling of the whole, for all parts."""
        if self.is_whole:
            self.parts[0].offer(labels, score)
            return
        near = labels if self.presolved is None or not self.parts else self.presolved.restrict(labels)
        for part in self.parts:
            own = near if part.variables is None else np.ascontiguousarray(near[part.variables])
            part.offer(own, part.model.score(own))
