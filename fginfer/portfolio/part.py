"""Part: a connected part of a model, the members at work on it, and what they have found. Who they are is for others
to say: team.py."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.threads import Threads
from fginfer.portfolio.worker import View, Worker

log = logging.getLogger("fginfer")


def work_of_round(number: int, rules: Rules) -> float:
    """Rounds are counted from 1 and grow up to the longest. Runs may have any number of them."""
    return min(rules.first_round * rules.round_growth ** min(number - 1, 64), rules.longest_round)


class Part(View, ABC):
    """A part under way: its members, its best labeling and its bound."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings) -> None:
        super().__init__(model, settings)
        self.variables = variables  # numbers of variables of the reduced model; None: all of them
        self.found_by: str | None = None  # who had the labeling, and the bound
        self.bound_by: str | None = None
        self.status = "running"

    @abstractmethod
    def prepare(self) -> None:
        """Chooses the first members."""

    @abstractmethod
    def begin_round(self, threads: Threads, work: float | None = None) -> Iterator[None]:
        """Members that join in this round do, and all owe its work (None: what the number of the round says)."""

    def _owe(self, work: float) -> None:
        """All members owe their shares of so much."""
        for member in self.members:
            member.account.begin_round()
            member.owe(work)

    @abstractmethod
    def end_round(self) -> None:
        """All members have done what they owed."""

    @property
    def running(self) -> bool:
        return self.status == "running"

    def join(self, kind: type[Worker]) -> bool:
        """A new member of this kind, unless it is of no use here."""
        try:
            member = kind.make(self)
        except (SolverError, MemoryError) as error:
            log.debug("%s does not join: %s", kind.name, error)
            return False
        if member is None:
            return False
        self.members.append(member)
        self.joined.add(kind.name)
        return True

    def _counted(self) -> Iterator[Worker]:
        """The members up to the first that has ended the search: what later ones do in its last round does not count,
        so that with one thread they need not do it."""
        for member in self.members:
            yield member
            if member.decides:
                return

    @property
    def busy(self) -> list[Worker]:
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

    def credits(self, over: bool = False) -> tuple[str | None, str | None]:
        """Who has the best labeling and the best bound, as `best` says them; `over`: their accounts count it."""
        found, proved, score, bound = self.found_by, self.bound_by, self.score, self.bound
        for member in self._counted():
            finds, proves = member.score > score, member.bound < bound
            if finds:
                found, score = member.name, member.score
            if proves:
                proved, bound = member.name, member.bound
            if over:
                member.account.note(finds, proves)
        return found, proved

    def collect(self) -> None:
        """The end of a round: takes the members' labelings and bounds."""
        self.found_by, self.bound_by = self.credits(over=True)
        self.labels, self.score, self.bound = self.best()
        last = next((m for m in self._counted() if m.decides), None)
        if last is not None:
            if last.status == "infeasible":
                self.bound_by = last.name
            self.status = "converged" if last.complete and last.status != "infeasible" else last.status
            counted = list(self._counted())
            for member in self.members[len(counted) :]:  # what they have done, if they had threads, counts for nobody
                member.account.undo_round()
            self.members = counted

    def offer(self, labels: NDArray[np.int32], score: float, by: str | None = None) -> None:
        """A labeling from outside: kept if it is better than what is known, and handed to the members."""
        if score > self.score:
            self.labels, self.score, self.found_by = labels, score, by
        self.share_labels()

    def share_labels(self) -> None:
        """The best labeling is offered to all members whose own is worse."""
        if self.labels is not None:
            for member in self.members:
                member.hear(self.labels, self.score)
