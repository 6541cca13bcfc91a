"""Part: a connected part of a model, the members at work on it, and what they have found. Who they are is for others
to say: trial.py, team.py."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.elimination import EliminationMember
from fginfer.portfolio.member import Member
from fginfer.portfolio.size import Size
from fginfer.portfolio.workers import Workers

log = logging.getLogger("fginfer")

# Work per member, in entries read: short enough to end early and to take turns. Half and twice of both on seven
# instances (two grids, side chains, detection, spot5/503, alignment, planning; 2 CPU s each): the longest changes times
# by little more than two runs differ (15 %). Half of the first: grid20 .65 -> .87 s, planning 1.5 -> 1.0 s; twice: as
# it is.
FIRST_ROUND, LONGEST_ROUND = 5e5, 2e7


def work_of_round(number: int) -> float:
    """Rounds are counted from 1 and double up to the longest. Runs may have any number of them."""
    return min(FIRST_ROUND * 2.0 ** min(number - 1, 64), LONGEST_ROUND)


class Part(ABC):
    """A part under way: its members, its best labeling and its bound."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings) -> None:
        self.model = model
        self.variables = variables  # of the reduced model; None: all of them
        self.settings = settings
        self.labels: NDArray[np.int32] | None = None
        self.score = -inf
        self.bound = inf
        self.status = "running"
        self.unit = model.unit
        self.members: list[Member | EliminationMember] = []

    @abstractmethod
    def prepare(self) -> None:
        """Chooses the first members."""

    @abstractmethod
    def begin_round(self, workers: Workers, work: float | None = None) -> Iterator[None]:
        """Members that join in this round do, and all owe its work (None: what the number of the round says)."""

    @abstractmethod
    def end_round(self) -> None:
        """All members have done what they owed."""

    @property
    def running(self) -> bool:
        return self.status == "running"

    @cached_property
    def size(self) -> Size:
        """Looked at when it is first asked for: many parts end before."""
        return Size(self.model)

    def join(self, kind: type[Member], share: float = 1.0, threads: int = 1) -> bool:
        """A new member, unless the method cannot take the model."""
        try:
            self.members.append(kind(self.model, self.settings, share, threads))
        except (SolverError, MemoryError) as error:
            log.debug("%s does not join: %s", kind.name, error)
            return False
        return True

    def has(self, kind: type[Member] | type[EliminationMember]) -> bool:
        return any(isinstance(member, kind) for member in self.members)

    def _counted(self) -> Iterator[Member | EliminationMember]:
        """The members up to the first that has ended the search: what later ones do in its last round does not count,
        so that with one thread they need not do it."""
        for member in self.members:
            yield member
            if member.decides:
                return

    @property
    def busy(self) -> list[Member | EliminationMember]:
        """Who still owes work of this round that counts."""
        return [m for m in self._counted() if m.busy]

    def work_off(self, deadline: float) -> None:
        """One member after the other does what it owes."""
        for member in self._counted():
            member.work_off(deadline)

    def best(self, labels: bool = True) -> tuple[NDArray[np.int32] | None, float, float]:
        """Labels, score and bound, with what the members have found in a round that is not over."""
        found, score, bound = self.labels, self.score, self.bound
        for member in self._counted():
            if member.score > score:
                found, score = member.labels() if labels else None, member.score
            bound = min(bound, member.bound)
        return found, score, bound

    def collect(self) -> None:
        """The end of a round: takes the members' labelings and bounds."""
        self.labels, self.score, self.bound = self.best()
        last = next((m for m in self._counted() if m.decides), None)
        if last is not None:
            self.status = "converged" if last.complete and last.status != "infeasible" else last.status
            self.members = list(self._counted())  # what the others have done, if they had threads, counts for nobody

    def offer(self, labels: NDArray[np.int32], score: float) -> None:
        """A labeling from outside: kept if it is better than what is known, and handed to the members."""
        if score > self.score:
            self.labels, self.score = labels, score
        self.share_labels()

    def share_labels(self) -> None:
        """The best labeling is offered to all members whose own is worse."""
        for member in self.members:
            if self.labels is not None and isinstance(member, Member) and self.score > member.engine.info.score:
                member.offer(self.labels)
