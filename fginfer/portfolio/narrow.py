"""NarrowSearch: a search among the labels that promise most, where variables have too many to look at them all."""

from __future__ import annotations

from math import inf, isqrt

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.elsewhere import Elsewhere
from fginfer.portfolio.member import ENDS
from fginfer.portfolio.searches import Search

NARROW_ENTRIES = 4e6  # of all tables of the narrow model: made in a tenth of a second, an access to memory an entry
LEAST_LABELS = 16  # a variable: with fewer a search would find little
LEFT_OUT = 4  # times as many labels as are kept, at least: otherwise the search on the whole model is as good


def narrow_labels(model: Model) -> int | None:
    """How many labels a variable may keep; None: it is not worth it."""
    most = isqrt(int(NARROW_ENTRIES / max(model.n_factors, 1)))
    fits = most >= LEAST_LABELS and int(model.cards.max(initial=1)) >= LEFT_OUT * most
    return most if fits else None


class NarrowSearch(Elsewhere, Search):
    """Better labelings of a model by those of a narrow one (`Model.narrow`): nothing it proves is about the whole."""

    def __init__(self, model: Model, settings: Settings, labels: NDArray[np.int32], most: int) -> None:
        own, self._kept = model.narrow(labels, most)
        super().__init__(own, settings)
        self._part = model
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

    def _in_part(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.take_along_axis(self._kept, labels[:, None], 1)[:, 0].copy()

    @property
    def bound(self) -> float:
        return inf
