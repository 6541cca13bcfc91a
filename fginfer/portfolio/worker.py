"""Worker: what a member of a team is. View: what it may ask about its team when it says what it wants.

A kind of worker says itself when one of it is due, how one is made, and what share of the next round it claims. The
team (team.py) is a loop over kinds that knows none of them. Workers know each other by name only, the one that is in
the ledger: "bnb", "cliques", "edac", "dolls", "sdp", "cycles", "trws", "gdmm", "ad3", "slabs", "triples", "search",
"narrow", "clauses", "icm", "elimination", "assignment".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.engine import Settings
from fginfer.portfolio.ledger import Account, terms_of
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.size import Size

ENDS = "optimal", "gap_reached", "infeasible"  # statuses of a worker after which its part is done with


class View:
    """A part as its workers see it: its model, what is known about it, who is there, and what progress they make."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model = model
        self.settings = terms_of(settings)
        self.rules = self.settings.rules
        self.unit = model.unit
        self.labels: NDArray[np.int32] | None = None
        self.score = -inf
        self.bound = inf
        self.members: list[Worker] = []
        self.asked: set[str] = set()  # names of the kinds that were due once
        self.joined: set[str] = set()  # names of the kinds that then joined
        self.round = 0  # the number of the round, from 1 on; 0: nobody has begun
        self.memory = 0.0  # bytes that elimination may use
        self.elimination: Elimination | None = None  # once an order has been looked for
        self.left_to_elimination = False  # nobody else was asked at first
        self.messages: NDArray[np.float64] | None = None  # messages of sweeps over this very model
        self.improved_at = 0.0  # work of the search when a better labeling was last found by anybody

    @cached_property
    def size(self) -> Size:
        """Looked at when it is first asked for: many parts end before."""
        return Size(self.model, self.rules)

    def of(self, *names: str) -> list[Worker]:
        """The members of these names."""
        return [m for m in self.members if m.name in names]

    def has(self, *names: str) -> bool:
        return bool(self.of(*names))

    def best_bound(self, *names: str) -> float:
        """The best bound of the members of these names; inf where there are none."""
        return min((m.bound for m in self.of(*names)), default=inf)

    def distance(self, gap: float) -> float:
        """From the best score to a bound with this relative gap."""
        return gap * max(self.unit, abs(self.score))

    # -- the progress of others ----------------------------------------------------------------------------------

    def leading_proof(self) -> Worker | None:
        """The branch and bound with the best bound."""
        return min(self.of("bnb", "cliques"), key=lambda m: m.bound, default=None)

    def is_far(self, worker: Worker) -> bool:
        """Is it loose, so that a proof has a long way to go?"""
        return worker.bound - self.score > self.distance(self.rules.far_proof)

    def gets_on(self, proof: Worker) -> bool:
        """Has it moved its bound not long ago?"""
        patience = self.rules.little_patience if self.is_far(proof) else self.rules.patience
        return proof.idle_work(self.score) < patience

    def is_overtaken(self, proof: Worker) -> bool:
        """Has who came to help closed so much of the gap it leaves that the relaxation may be tight? Or anything, where
        it stands still?"""
        rules = self.rules
        stands = proof.idle_work(self.score) >= rules.little_patience
        much = min(rules.overtaken, rules.moved) if stands else rules.overtaken
        return proof.bound - self.best_bound("gdmm", "cycles", "triples") > much * (proof.bound - self.score)

    @property
    def help_is_due(self) -> bool:
        """Would another relaxation be worth a try? That takes less than to give up the proof: branch and bound moves
        its bound seldom, and late."""
        proof = self.leading_proof()
        if proof is None or self.has("cycles") or "gdmm" in self.asked or "slabs" in self.joined:
            return False
        cold = self.is_far(proof) or self.messages is None
        patience = self.rules.little_patience if cold else self.rules.near_patience
        return proof.idle_work(self.score) >= patience and not self.trees_decide

    @property
    def trees_decide(self) -> bool:
        """Whether there is any labeling is for edac and the clauses to find out."""
        return self.size.few_labelings and self.labels is None

    @property
    def cycles_lead(self) -> bool:
        """Do they see what trees do not?"""
        others = self.best_bound("bnb", "cliques", "edac", "dolls")
        return others - self.best_bound("cycles") > self.rules.overtaken * (others - self.score)

    def is_exhausted(self, search: Worker) -> bool:
        """Has it found nothing for long?"""
        return search.work - self.improved_at > max(self.rules.stale_work, self.rules.stale_times * self.improved_at)

    @property
    def search_is_first(self) -> bool:
        """Are bounds so far off, as on dense graphs of binary variables, that they are of no use to anybody?"""
        if not self.size.is_crowded or self.labels is None:
            return False
        far = self.bound - self.score > self.distance(self.rules.hopeless)
        return far and not any(self.is_exhausted(m) for m in self.of("search", "narrow"))


class Worker(ABC):
    """A member of a team. `owe` gives it work, `work_off` does it until a deadline and can be called again."""

    name: ClassVar[str]  # in the ledger, the log and the team
    gives_way: ClassVar[bool] = False  # has hardly any work where bounds say nothing
    account: Account
    rules: Rules
    status = "running"
    error: Exception | None = None  # why the status is "failed"
    share = 1.0  # work for each unit of work that a round gives
    threads = 1

    # -- when it joins, and what it wants ----------------------------------------------------------------------

    @classmethod
    def due(cls, team: View) -> bool:
        """Is it time for one of this kind to join? Asked at the times that the list with its kind says (team.py)."""
        return False

    @classmethod
    @abstractmethod
    def make(cls, team: View) -> Worker | None:
        """One for this team; None, a SolverError or a MemoryError: it is of no use there."""

    def claim(self, team: View) -> float:
        """Its share of the next round: 1 is as much as the round is long."""
        return self.share

    # -- work --------------------------------------------------------------------------------------------------

    @abstractmethod
    def owe(self, work: float) -> None:
        """Adds its share of so much."""

    @abstractmethod
    def work_off(self, deadline: float) -> None:
        """Works until nothing is owed, the method is done, or the deadline passes."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Work is owed, or something is unfinished."""

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def work(self) -> float:
        """Done so far."""
        return 0.0

    @property
    def iterations(self) -> int:
        return 0

    @property
    def steps(self) -> int:
        """Iterations, and sweeps before them."""
        return self.iterations

    @property
    def memory(self) -> int:
        """Bytes that it takes."""
        return 0

    def rest(self, alone: bool) -> None:  # noqa: B027  (most have nothing to do)
        """Its own threads pause, since others need the cores, or go on."""

    # -- what it has found, and what progress it makes -----------------------------------------------------------------

    @property
    @abstractmethod
    def score(self) -> float: ...

    @property
    @abstractmethod
    def bound(self) -> float: ...

    @abstractmethod
    def labels(self) -> NDArray[np.int32] | None: ...

    def events(self) -> NDArray[Any]:
        """The trace events that are new since the last call."""
        return np.empty(0, EVENT)

    @property
    def complete(self) -> bool:
        """Nothing is left to find."""
        return False

    @property
    def decides(self) -> bool:
        """The part is done with: its optimum is known, or as near as was asked for, or there is none."""
        return self.status in ENDS or self.complete

    def idle_work(self, score: float) -> float:
        """Done since its bound moved by a part of the gap to the best score; 0 for who has no bound of its own."""
        return 0.0

    def is_idle(self, team: View) -> bool:
        """Has it hardly moved its bound in its last passes?"""
        return False

    def work_left(self) -> float | None:
        """What its tree is likely to take to its end, inf if that is not known; None: it has no tree."""
        return None

    # -- what it is told ----------------------------------------------------------------------------------------

    def start_from(self, messages: NDArray[np.float64]) -> None:  # noqa: B027  (most have nothing to do)
        """Messages of another method, if it has not begun."""

    def hear(self, labels: NDArray[np.int32], score: float) -> None:  # noqa: B027  (most have nothing to do)
        """The best labeling of the part."""

    def hear_bound(self, bound: float) -> None:  # noqa: B027  (most have nothing to do)
        """The best bound of the part."""
