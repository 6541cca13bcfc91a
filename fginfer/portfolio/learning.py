"""Learning: the search on constraints as they were said (fginfer/conflicts), beside the members that work on tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, nextafter

from fginfer.conflicts import Learner, learner_of
from fginfer.core import clock
from fginfer.lower import Lowered
from fginfer.portfolio.known import Given, Incumbent
from fginfer.portfolio.ledger import Terms


class Learning:
    """A learner, made when its first turn comes. What it finds goes to what is known, and the other way round."""

    name = "clauses"

    def __init__(self, origin: Lowered, given: Given, settings: Terms) -> None:
        self._origin, self._given, self._cutoff = origin, given, settings.cutoff
        self._most_entries = settings.rules.learning_entries
        self._piece = settings.rules.learning_piece
        self._account = settings.ledger.open("clauses on constraints")
        self._learner: Learner | None = None
        self._is_made = False
        self._offered = -inf

    @property
    def is_quick(self) -> bool:
        """Do few tables have to be said as clauses?"""
        return self._origin.tables.states <= self._most_entries

    @property
    def has_none(self) -> bool:
        """Is it proved that no labeling obeys the constraints?"""
        return self._learner is not None and self._learner.bound == -inf

    def advance(self, known: Incumbent, deadline: Callable[[], float], work: float) -> Iterator[None]:
        """Until it has done so much in all; pauses where the deadline has passed."""
        if not self._is_made:
            self._is_made = True
            self._learner = learner_of(self._origin, self._cutoff)
        learner = self._learner
        if learner is None or learner.status != "running" or learner.work >= work:
            return
        if known.labels is not None and known.score > self._offered:
            self._offered = known.score
            learner.offer(known.labels[: len(self._origin.cards)])
        while learner.status == "running" and learner.work < work:
            began = clock.now()
            if learner.run(int(min(self._piece, work - learner.work)) + 1):
                self._take(learner, known)
            self._account.seconds += clock.now() - began
            self._account.work = learner.work
            if clock.now() >= deadline():
                yield

    def _take(self, learner: Learner, known: Incumbent) -> None:
        score, bound = known.score, known.bound
        if learner.labels is not None:
            known.improve(self._origin.complete(learner.labels), by=self.name)
            self._offered = known.score
        if -inf < learner.bound < inf:
            above = learner.bound + self._origin.rounding
            above = above if self._origin.rounding == 0 else nextafter(above, inf)
            known.tighten(self._given.own_bound(above), self.name)
        self._account.note(known.score > score, known.bound < bound)
