"""Run: what is known in a run of auto on one model, what is at work, and the rounds of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.engine import Settings
from fginfer.portfolio.division import Division, Reduction
from fginfer.portfolio.known import Given, Incumbent
from fginfer.portfolio.learning import Learning
from fginfer.portfolio.ledger import terms_of
from fginfer.portfolio.members.relaxation import Sweeps
from fginfer.portfolio.size import Size
from fginfer.portfolio.threads import Threads


@dataclass(frozen=True)
class Options:
    """What a caller may say about auto."""

    presolve: bool
    memory: float  # bytes that elimination may use


class Run:
    """One model under way. The stages of a run (policy.py) share it, and leave in it what the next ones need."""

    def __init__(self, given: Given, settings: Settings, options: Options, threads: Threads) -> None:
        self.status = "running"
        self.iterations = 0  # rounds
        self.setup_seconds = 0.0
        self.division: Division | None = None  # into parts that are worked on
        self.learning: Learning | None = None  # on the constraints behind the model
        self.known = Incumbent(given.model, settings.start_time, given.into(settings.cutoff))
        self.given, self.model = given, given.model
        self.settings, self.options = terms_of(settings), options
        self.ledger, self.rules = self.settings.ledger, self.settings.rules
        same = self.known.cutoff == settings.cutoff
        self.own = (
            self.settings if same else replace(self.settings, cutoff=self.known.cutoff)
        )  # for members: in that unit
        self.threads = threads
        threads.at_once = self.model.states < self.rules.at_once_states
        # Messages of the sweeps of a small one, for the proof that is next
        self.messages: NDArray[np.float64] | None = None
        self.sweeps: Sweeps | None = None  # sweeps of a large model, from step 2 on
        self.proven_by: Sweeps | None = None  # those of a small model, if they have ended the run
        # The presolve of step 3, which may begin beside step 2
        self.reduction = Reduction(self.model, threads, self.ledger)

    @cached_property
    def size(self) -> Size:
        """Looked at when it is first asked for: tiny models end before."""
        return Size(self.model, self.rules)

    @property
    def is_hopeless(self) -> bool:
        """Proofs and presolve would take the time of the search, and make no progress."""
        return self.size.is_crowded and self.known.gap > self.rules.hopeless

    def deadline(self) -> float:
        """The end of the slice under way."""
        return self.threads.deadline

    def for_proofs(self) -> Settings:
        """Settings of members that may go on after a small gap."""
        return self.own if self.settings.gap > self.rules.proof_gap else replace(self.own, gap=0.0)

    def learn(self, work: float | None = None) -> Iterator[None]:
        """The search on constraints as they were said, for so much work in all, or a share of what all have done."""
        if self.learning is None:
            return
        total = self.ledger.work() if work is None else work
        yield from self.learning.advance(self.known, self.deadline, total * (1 if work else self.rules.learning_share))
        if self.learning.has_none:
            self.finish_infeasible(-inf, by=self.learning.name)
        self.settle()

    def round(self, work: float | None = None) -> Iterator[None]:
        """Work for the members of all parts, and what has come of it."""
        assert self.division is not None
        parts = self.division.running
        for part in parts:
            yield from part.begin_round(self.threads, work)
        while any(part.busy for part in parts):
            self.threads.work_off(parts)
            if any(part.busy for part in parts):
                yield
        for part in parts:
            part.end_round()
        self.combine()

    def combine(self) -> None:
        """After a round: from the parts to the whole."""
        assert self.division is not None
        lost = next((p for p in self.division.parts if p.status == "infeasible"), None)
        if lost is not None:
            bound, certain = self.division.lost_bound(lost), self.division.error == 0
            self.finish_infeasible(bound, certain, lost.bound_by)
            return
        self.gather(self.known, fully=False)
        if not self.division.running:
            self.status = "converged"
        self.settle()

    def gather(self, known: Incumbent, fully: bool) -> None:
        """Puts together what the parts have found so far; labels only where they can be the end, unless `fully`."""
        division = self.division
        if division is None:
            return
        if len(division.parts) == 1:  # its members' clocks are finer than ours
            for member in division.parts[0].members:
                events = member.events().tolist()
                known.points += [(t, division.at_least([score]), bound) for t, score, bound, _ in events]
        labels, score, bound = division.best()
        found, proved = division.credits()
        if labels is not None and score > known.score:
            if fully or division.is_whole or self._may_settle(division, score, bound):
                known.improve(division.expand(labels), score if division.is_whole else None, found)
            elif (certain := division.unexpanded_score(score)) is not None:
                known.points.append((known.seconds(), certain, inf))
        known.tighten(bound, proved)

    def _may_settle(self, division: Division, score: float, bound: float) -> bool:
        """Could this be the end? If not, labels of reduced models need not be expanded, which takes passes over the
        whole. Their scores are those of that, but for rounding."""
        near = 2 * max(self.settings.gap, self.rules.proof_gap) * max(self.known.unit, abs(score)) + 2 * division.error
        return bound - score <= near or not division.running

    def settle(self) -> None:
        """Is what is known good enough?"""
        if self.status in ("running", "converged"):
            self.known.close_last_step()
            if self.known.proven:
                self.status = "optimal" if self.known.wanted else "infeasible"
            elif self.known.gap <= self.settings.gap and self.given.gap(self.known) <= self.settings.gap:
                self.status = "gap_reached"

    def finish_infeasible(self, bound: float, certain: bool = True, by: str | None = None) -> None:
        """No labeling is above the cutoff; unless that is `certain`, the bound has to say so, too."""
        self.known.bound_by = self.known.bound_by if by is None else by
        certain = certain or self.known.cutoff == -inf
        self.status, self.known.bound = "infeasible", bound if certain else min(bound, self.known.bound)
        if not certain:
            self.known.close_last_step()
            self.status = "infeasible" if self.known.proven else "converged"
