"""Run: what is known in a run of auto on one model, what is at work, and the rounds of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.engine import Settings
from fginfer.portfolio.division import Division
from fginfer.portfolio.given import Given
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.opening import HOPELESS
from fginfer.portfolio.reduction import Reduction
from fginfer.portfolio.relaxations import Sweeps
from fginfer.portfolio.size import Size
from fginfer.portfolio.workers import Workers

SMALL_STATES = 1e5  # of all tables: a pass takes a tenth of a millisecond, so that nothing takes long
PROOF_GAP = 1e-6  # allowed by default: who allows more does not mind a proof


@dataclass(frozen=True)
class Options:
    """What a caller may say about auto."""

    presolve: bool = True
    memory: float = 1 << 30  # bytes that elimination may use


class Run:
    """One model under way. The stages of a run (policy.py) share it, and leave in it what the next ones need."""

    def __init__(self, given: Given, settings: Settings, options: Options, workers: Workers) -> None:
        self.status = "running"
        self.iterations = 0  # rounds
        self.setup_seconds = 0.0
        self.division: Division | None = None  # into parts that are worked on
        self.known = Incumbent(given.model, settings.start_time, given.into(settings.cutoff))
        self.given, self.model = given, given.model
        self.settings, self.options = settings, options
        same = self.known.cutoff == settings.cutoff
        self.own = settings if same else replace(settings, cutoff=self.known.cutoff)  # for members: in that unit
        self.workers = workers
        workers.at_once = self.model.states < SMALL_STATES
        self.messages: NDArray[np.float64] | None = None  # of the sweeps of a small one, for the proof that is next
        self.sweeps: Sweeps | None = None  # of a large model, from step 2 on
        self.reduction = Reduction(self.model, workers)  # of step 3, which may begin beside step 2

    @cached_property
    def size(self) -> Size:
        """Looked at when it is first asked for: tiny models end before."""
        return Size(self.model)

    @property
    def is_hopeless(self) -> bool:
        """Proofs and presolve would take the time of the search, and not get on."""
        return self.size.is_crowded and self.known.gap > HOPELESS

    def deadline(self) -> float:
        """Of the slice under way."""
        return self.workers.deadline

    def for_proofs(self) -> Settings:
        """Of members that may go on after a small gap."""
        return self.own if self.settings.gap > PROOF_GAP else replace(self.own, gap=0.0)

    def round(self, work: float | None = None) -> Iterator[None]:
        """Work for the members of all parts, and what has come of it."""
        assert self.division is not None
        parts = self.division.running
        for part in parts:
            yield from part.begin_round(self.workers, work)
        while any(part.busy for part in parts):
            self.workers.work_off(parts)
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
            self.finish_infeasible(self.division.lost_bound(lost), certain=self.division.error == 0)
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
        if labels is not None and score > known.score:
            if fully or division.is_whole or self._may_settle(division, score, bound):
                known.improve(division.expand(labels), score if division.is_whole else None)
            elif (certain := division.unexpanded_score(score)) is not None:
                known.points.append((known.seconds(), certain, inf))
        known.tighten(bound)

    def _may_settle(self, division: Division, score: float, bound: float) -> bool:
        """Could this be the end? If not, labels of reduced models need not be expanded, which takes passes over the
        whole. Their scores are those of that, but for rounding."""
        near = 2 * max(self.settings.gap, PROOF_GAP) * max(self.known.unit, abs(score)) + 2 * division.error
        return bound - score <= near or not division.running

    def settle(self) -> None:
        """Is what is known good enough?"""
        if self.status in ("running", "converged"):
            self.known.close_last_step()
            if self.known.proven:
                self.status = "optimal" if self.known.wanted else "infeasible"
            elif self.known.gap <= self.settings.gap and self.given.gap(self.known) <= self.settings.gap:
                self.status = "gap_reached"

    def finish_infeasible(self, bound: float, certain: bool = True) -> None:
        """No labeling is above the cutoff; unless that is `certain`, the bound has to say so, too."""
        certain = certain or self.known.cutoff == -inf
        self.status, self.known.bound = "infeasible", bound if certain else min(bound, self.known.bound)
        if not certain:
            self.known.close_last_step()
            self.status = "infeasible" if self.known.proven else "converged"
