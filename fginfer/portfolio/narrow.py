"""NarrowSearch: a search among the labels that promise most, where variables have too many to look at them all."""

from __future__ import annotations

from math import inf, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.engine import Settings
from fginfer.portfolio.member import ENDS, Search

NARROW_ENTRIES = (
    4e6  # of all tables of the narrow model: made in a tenth of a second, each entry by an access to memory
)
LEAST_LABELS = 16  # a variable: with fewer a search would find little
LEFT_OUT = 4  # times as many labels as are kept, at least: otherwise the search on the whole model is as good


def narrow_labels(model: Model) -> int | None:
    """How many labels a variable may keep; None: it is not worth it."""
    most = isqrt(int(NARROW_ENTRIES / max(model.n_factors, 1)))
    fits = most >= LEAST_LABELS and int(model.cards.max(initial=1)) >= LEFT_OUT * most
    return most if fits else None


class NarrowSearch(Search):
    """Better labelings of a model by those of a narrow one (`Model.narrow`): nothing it proves is about the whole."""

    def __init__(self, model: Model, settings: Settings, labels: NDArray[np.int32], most: int) -> None:
        own, self._kept = model.narrow(labels, most)
        super().__init__(own, settings)
        self._model = model
        self._scored, self._score = -inf, -inf  # the engine's score, and that of the same labels in the whole
        self.offer(labels)

    def offer(self, labels: NDArray[np.int32]) -> None:
        """Labelings with labels that are not kept are of no use to it."""
        at = self._kept == labels[:, None]
        if at.any(axis=1).all():
            self.engine.offer(at.argmax(axis=1).astype(np.int32))

    def work_off(self, deadline: float) -> None:
        super().work_off(deadline)
        if self.status in ENDS:
            self.status = "converged"  # there is nothing better among these labels

    @property
    def decides(self) -> bool:
        return False

    def labels(self) -> NDArray[np.int32] | None:
        labels = self.engine.labels()
        return None if labels is None else np.take_along_axis(self._kept, labels[:, None], 1)[:, 0].copy()

    @property
    def score(self) -> float:
        said = float(self.engine.info.score)
        if said != self._scored:
            labels = self.labels()
            self._scored, self._score = said, -inf if labels is None else self._model.score(labels)
        return self._score

    @property
    def bound(self) -> float:
        return inf

    def events(self) -> NDArray[Any]:
        """Its bounds are not those of the whole: what it finds is stamped at the end of a round."""
        return np.empty(0, EVENT)
