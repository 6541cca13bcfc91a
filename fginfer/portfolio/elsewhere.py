"""Elsewhere: a member at work on another model than its part, whose labels are labels of the part in disguise."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.portfolio.member import Member


class Elsewhere(Member):
    """`_part` is the part's model, which a class sets: what is found is scored in its tables."""

    _part: Model
    _scored, _score = -inf, -inf  # the engine's score, and that of the same labels in the part

    @abstractmethod
    def _in_part(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels of the other model, as labels of the part."""

    def labels(self) -> NDArray[np.int32] | None:
        labels = self.engine.labels()
        return None if labels is None else self._in_part(labels)

    @property
    def score(self) -> float:
        said = float(self.engine.info.score)
        if said != self._scored:
            labels = self.labels()
            self._scored, self._score = said, -inf if labels is None else self._part.score(labels)
        return self._score

    def events(self) -> NDArray[Any]:
        """Its scores are sums in another order, its bounds not those of the part: what it finds is stamped at the end
        of a round."""
        return np.empty(0, EVENT)
