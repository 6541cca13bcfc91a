"""method="auto": the best labeling that the time limit can buy, and how far it can be from optimal.

The policy, from first to last (all of it is in this file):

1. Tiny models: a few iterations of branch and bound, before anything else is set up. Most end here.
   Others: a labeling by coordinate ascent, within milliseconds.
2. A short run of branch and bound on the model as it is; easy models end here.
3. Presolve: exact reductions with a way back. What is left falls into connected parts.
4. Every part gets a portfolio of members: a *proof* (branch and bound, whose root is TRW-S) and a *search* for better
   labelings. Large parts get TRW-S alone instead of the proof. Parts with very large tables or very many factors get
   gdmm, since one pass over their tables would cost more than its whole run.
5. A small part that is cheap to eliminate gets nothing but elimination. A part that is not solved after a few rounds
   and whose treewidth allows it gets elimination as another member. A part whose proof does not get on leaves it
   little work, and gets another relaxation: slabs where the gap is large and the part sparse enough, else gdmm.
6. Members work in rounds. A round gives every member the same amount of work, counted in table entries; then the best
   labeling and the best bound are handed to all. Rounds grow from a fraction of a millisecond to some tens of them.
   With several threads the members of a round run at the same time: what they do does not depend on it.

Nothing is decided by the clock, which only says when to stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.exact import Elimination, split
from fginfer.core.model import Model
from fginfer.core.presolve import Presolved, presolve
from fginfer.engine import Settings
from fginfer.errors import SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.member import EliminationMember, Member
from fginfer.result import Progress, Result, known

log = logging.getLogger("fginfer")
T = TypeVar("T")

FIRST_ROUND, LONGEST_ROUND = 5e5, 2e7  # work per member
NEAR_PROOF, NEAR_SHARE = 0.01, 0.25  # of a round for the search: at this gap the proof is likely to find the rest
ELIMINATION_ROUND = 4  # when elimination is considered: the easy models are solved by then
WORTH_ELIMINATING = 3e10  # work
FEW_FACTORS, AT_ONCE = 2000, 3e7  # of a part: if it can be eliminated with so little work, nothing else is tried
LARGE_STATES = 1.5e8  # states of all factors: beyond this, sweeps over tables are too slow
PASS_TOO_LONG = 2e7  # and beyond this, too slow for branch and bound: TRW-S alone
MANY_FACTORS = 1_000_000
SMALL_STATES = 1e5
TINY_STATES, TINY_ITERATIONS = 2000, 40
PROVEN = 1e-12  # a relative gap that is rounding
QUICK_WORK, QUICK_PASSES = 1.2e7, 6.0  # of the proof before presolve: at least so much work, and passes over the tables
PATIENCE = 5e8  # work after which a proof that has not moved the bound ...
FAR_PROOF, LITTLE_PATIENCE = 0.05, 1e8  # ... (less if the gap is this large) ...
MOVED = 0.02  # ... by this fraction of the gap ...
SMALL_SHARE = 0.1  # ... is left with this share, and slabs join for a better bound ...
SLABS_SHARE = 0.2  # ... with this one: their first iterations bring most of it, and the search needs the time


class PartState:
    """A part under way: its members, its best labeling and its bound."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, memory: float) -> None:
        self.model = model
        self.variables = variables  # of the reduced model; None: all of them
        self.settings = settings
        self.labels: NDArray[np.int32] | None = None
        self.score = -inf
        self.bound = inf
        self.status = "running"
        self.members: list[Member | EliminationMember] = []
        self._memory = memory
        self._round = 0
        self._moved_at, self._moved_bound = 0.0, inf  # work and bound when the proof last got on
        self._states = 0.0
        self._helped = False  # slabs or gdmm have been asked to join

    @property
    def running(self) -> bool:
        return self.status == "running"

    # -- which members -----------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Chooses the first members."""
        self._states = self.model.states
        if self.model.n_factors <= FEW_FACTORS and self._consider_elimination(AT_ONCE):
            return
        if _is_large(self.model, self._states):
            self.join("gdmm")
        else:
            self.join("trws" if self._states > PASS_TOO_LONG else "bnb")
        self.join("search")

    def join(self, method: str, share: float = 1.0) -> None:
        """A new member, unless the method cannot take the model."""
        try:
            self.members.append(Member(self.model, method, self.settings, share))
        except SolverError as error:
            log.debug("%s does not join: %s", method, error)

    def _consider_elimination(self, most_work: float) -> bool:
        """Elimination joins if it fits in memory and takes no more than this work."""
        if self.model.n_factors > MANY_FACTORS:
            return False
        elimination = Elimination(self.model, self._memory)
        if not elimination.fits or elimination.estimate.work > most_work:
            return False
        self.members.append(EliminationMember(elimination))
        return True

    def _share_of_proof(self, proof: Member) -> float:
        """All of it while the proof gets on, little once it has not moved the bound for long."""
        info = proof.engine.info
        if any(member.name == "slabs" for member in self.members):  # it is they that move the bound now
            return SMALL_SHARE
        if info.oracle_calls <= 1:  # still at the root
            self._moved_at, self._moved_bound = proof.work, info.bound
            return 1.0
        if self._moved_bound - info.bound > MOVED * (info.bound - self.score):
            self._moved_at, self._moved_bound = proof.work, info.bound
        far = self._is_far(proof)
        return 1.0 if proof.work - self._moved_at < (LITTLE_PATIENCE if far else PATIENCE) else SMALL_SHARE

    def _is_far(self, proof: Member) -> bool:
        """Is the relaxation loose, so that the proof has a long way to go?"""
        return proof.bound - self.score > FAR_PROOF * max(1.0, abs(self.score))

    # -- rounds ------------------------------------------------------------------------------------------------

    def round(self, engine: AutoEngine, work: float | None = None) -> Iterator[None]:
        """One round: work for all, then exchange."""
        self._round += 1
        if self._round == ELIMINATION_ROUND and not any(m.name == "elimination" for m in self.members):
            yield from engine.aside(lambda: self._consider_elimination(WORTH_ELIMINATING))
        for member in self.members:
            member.owe(min(FIRST_ROUND * 2.0 ** (self._round - 1), LONGEST_ROUND) if work is None else work)
        while busy := [m for m in self.members if m.busy]:
            engine.work_off(busy)
            if any(m.busy for m in busy):
                yield
        self._collect()
        self._exchange()

    def best(self) -> tuple[NDArray[np.int32] | None, float, float]:
        """Labels, score and bound, with what the members have found in a round that is not over."""
        labels, score, bound = self.labels, self.score, self.bound
        for member in self.members:
            if member.score > score:
                labels, score = member.labels(), member.score
            bound = min(bound, member.bound)
        return labels, score, bound

    def _collect(self) -> None:
        """The end of a round: takes the members' labelings and bounds."""
        self.labels, self.score, self.bound = self.best()
        ends = [m.status for m in self.members]
        self.status = next((end for end in ("infeasible", "optimal", "gap_reached") if end in ends), "running")

    def _take(self, labels: NDArray[np.int32], score: float) -> None:
        if score > self.score:
            self.labels, self.score = labels, score

    def offer(self, labels: NDArray[np.int32], score: float) -> None:
        """A labeling from outside: kept if it is better than what is known, and handed to the members."""
        self._take(labels, score)
        self._share_labels()

    def _share_labels(self) -> None:
        for member in self.members:
            if self.labels is not None and isinstance(member, Member) and self.score > member.engine.info.score:
                member.engine.offer(self.labels)

    def _exchange(self) -> None:
        self.members = [m for m in self.members if m.running]
        self._share_labels()
        for member in list(self.members):
            if not isinstance(member, Member):
                continue
            if member.name == "bnb":  # is not told bounds: its own shows whether it gets on
                member.share = self._share_of_proof(member)
                if member.share < 1.0 and not self._helped:
                    self._helped = True
                    if self._is_far(member):
                        self.join("slabs", SLABS_SHARE)
                    else:
                        self.join("gdmm")
            elif self.bound < member.bound:
                member.engine.offer_bound(self.bound)
            if member.name == "search":
                near = self.labels is not None and self.bound - self.score <= NEAR_PROOF * max(1.0, abs(self.score))
                member.share = NEAR_SHARE if near else 1.0
        if not self.members and self.running:
            self.status = "converged"


class AutoEngine:
    """The portfolio behind method="auto". Options: presolve (True), memory (bytes that elimination may use)."""

    _END = object()

    def __init__(self, graph: FactorGraph, settings: Settings) -> None:
        options = dict(settings.options)
        self._presolve = bool(options.pop("presolve", True))
        self._memory = float(options.pop("memory", 1 << 30))
        if options:
            raise SettingsError(f"unknown option {next(iter(options))!r} for method auto; there are memory, presolve")
        self.settings = settings
        self._threads: ThreadPoolExecutor | None = None
        self._begin(graph, settings.start_time)

    def _begin(self, graph: FactorGraph, start: float) -> None:
        self._model = graph.snapshot()
        self._known = Incumbent(self._model, start if start >= 0 else clock.now())
        self.settings = replace(self.settings, start_time=self._known.start)  # members stamp events by it
        self._constant = 0.0
        self._iterations = 0
        self._setup_seconds = 0.0
        self._status = "running"
        self._deadline = inf
        self._parts: list[PartState] = []
        self._divided = False  # into parts; none may be left of it
        self._presolved: Presolved | None = None
        self._states = self._model.states
        self._small = self._states < SMALL_STATES  # nothing on it takes long
        self._steps = self._policy()

    # -- the policy --------------------------------------------------------------------------------------------

    def _policy(self) -> Iterator[None]:
        """Yields whenever it may pause; a pause changes nothing but the time."""
        for stage in (self._first_labeling, self._quick_proof, self._reduce):
            yield from stage()
            self._settle()
            if self._status != "running":
                return
        while self._status == "running":
            for state in [p for p in self._parts if p.running]:
                yield from state.round(self)
                self._combine()
                if self._status != "running":
                    return
            self._iterations += 1
            limit = self.settings.max_iterations
            if limit is not None and self._iterations >= limit:
                self._status = "iteration_limit"
            yield

    def _at_once(self) -> Iterator[None]:
        """A short proof without rounds and parts."""
        proof = Member(self._model, "bnb", self.settings)
        engine = proof.engine
        if self._known.labels is not None:
            engine.offer(self._known.labels)
        while engine.status == "running" and engine.info.iterations < TINY_ITERATIONS:
            engine.run(self._left(), TINY_ITERATIONS - engine.info.iterations)
            if engine.status == "running":
                yield
        labels = engine.labels()
        self._known.points += [(t, score, bound) for t, score, bound, _ in proof.events().tolist()]
        if labels is not None and proof.score > self._known.score:
            self._known.labels, self._known.score = labels, proof.score
        if engine.status == "infeasible":
            self._finish_infeasible()
        else:
            self._known.bound = min(self._known.bound, max(proof.bound, self._known.score))
            if engine.status == "optimal":
                self._known.bound = self._known.score
        self._settle()

    def _first_labeling(self) -> Iterator[None]:
        if self._states <= TINY_STATES:
            yield from self._at_once()
            return
        first = Member(self._model, "icm", self.settings)
        while True:
            first.engine.run(self._left(), 1)
            labels = first.labels()
            if labels is not None:
                self._known.improve(labels, first.score)
            self._known.tighten(first.bound)
            if first.engine.info.iterations > 0 or first.engine.status != "running":
                return
            yield

    def _quick_proof(self) -> Iterator[None]:
        """Branch and bound on the model as it is: easy models are done before presolve has looked at them."""
        if self._states > PASS_TOO_LONG or _is_large(self._model, self._states):
            return
        proof = PartState(self._model, None, self.settings, self._memory)
        yield from self.aside(lambda: proof.join("bnb"))
        self._parts, self._divided = [proof], True
        if self._known.labels is not None:
            proof.offer(self._known.labels, self._known.score)
        yield from proof.round(self, max(QUICK_WORK, QUICK_PASSES * self._states))
        self._combine()

    def _reduce(self) -> Iterator[None]:
        model, presolved = self._model, None
        if self._presolve:
            presolved = yield from self.aside(lambda: presolve(self._model))
            log.info("%s", presolved.log_line())
            if presolved.infeasible:
                self._finish_infeasible()
                return
            model = presolved.model
        parts = yield from self.aside(lambda: split(model))
        self._presolved, self._divided = presolved, True
        if len(parts) == 1:
            self._parts = [PartState(model, None, self.settings, self._memory)]
        else:
            self._constant = model.constant
            exact = replace(self.settings, gap=0.0)  # gaps of parts could add up to more than the gap allowed
            self._parts = [PartState(c.model, c.variables, exact, self._memory) for c in parts]
        for state in self._parts:
            yield from self.aside(state.prepare)
        labels = self._known.labels
        if labels is not None and self._parts:
            near = labels if self._presolved is None else self._presolved.restrict(labels)
            for state in self._parts:
                own = near if state.variables is None else np.ascontiguousarray(near[state.variables])
                state.offer(own, state.model.score(own))
        self._setup_seconds = self._known.seconds()
        self._combine()

    # -- work --------------------------------------------------------------------------------------------------

    def aside(self, job: Callable[[], T]) -> Generator[None, None, T]:
        """Runs what cannot be cut into slices on a thread, so that limits and Ctrl-C stay prompt."""
        if self._small:
            return job()
        future = self._pool.submit(job)
        while not future.done():
            wait([future], timeout=min(self._left(), 60.0))
            yield
        return future.result()

    @property
    def _pool(self) -> ThreadPoolExecutor:
        """Made when it is first needed: tiny models never need it."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max(1, self.settings.threads - 1))
        return self._threads

    def _left(self) -> float:
        return max(0.0, self._deadline - clock.now())

    def work_off(self, members: list[Member | EliminationMember]) -> None:
        """Members do what they owe, at the same time if there are threads."""
        if self.settings.threads == 1 or len(members) < 2:
            for member in members:
                member.work_off(self._deadline)
            return
        jobs = [self._pool.submit(m.work_off, self._deadline) for m in members[1:]]
        members[0].work_off(self._deadline)
        for job in jobs:
            job.result()

    def run(self, seconds: float, iterations: int) -> str:
        self._deadline = clock.now() + seconds if seconds >= 0 else inf
        target = self._iterations + iterations if iterations >= 0 else None
        while self._status == "running" and (target is None or self._iterations < target):
            if next(self._steps, self._END) is self._END and self._status == "running":
                self._status = "converged"  # the policy has nothing more to try
            if clock.now() >= self._deadline:
                break
        return self._status

    # -- what is known -----------------------------------------------------------------------------------------

    def _combine(self) -> None:
        """After a round: from the parts to the whole."""
        if any(p.status == "infeasible" for p in self._parts):
            self._finish_infeasible()
            return
        self._gather(self._known)
        if all(p.status == "optimal" for p in self._parts) and self._known.labels is not None:
            self._known.tighten(self._known.score)
            self._status = "optimal"
        elif all(not p.running for p in self._parts):
            self._status = "converged"
        self._settle()

    def _gather(self, known: Incumbent) -> None:
        """Puts together what the parts have found so far."""
        if not self._divided:
            return
        if len(self._parts) == 1:  # its members' clocks are finer than ours
            for member in self._parts[0].members:
                known.points += [(t, score, bound) for t, score, bound, _ in member.events().tolist()]
        found = [p.best() for p in self._parts]
        labels = [x for x, _, _ in found if x is not None]
        if len(labels) == len(found) and self._constant + sum(score for _, score, _ in found) > known.score:
            known.improve(self._expand(labels))
        known.tighten(self._constant + sum(bound for _, _, bound in found))

    def _settle(self) -> None:
        """Is what is known good enough?"""
        if self._status in ("running", "converged"):
            if self._known.gap <= PROVEN:
                self._status = "optimal"
            elif self._known.gap <= self.settings.gap:
                self._status = "gap_reached"

    def _expand(self, labels: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        """The labels of all parts, as labels of the original variables."""
        if len(labels) == 1 and self._parts[0].variables is None:
            reduced = labels[0]
        else:
            reduced = np.zeros(sum(map(len, labels)), np.int32)
            for part, own in zip(self._parts, labels, strict=True):
                assert part.variables is not None
                reduced[part.variables] = own
        return reduced if self._presolved is None else self._presolved.expand(reduced)

    def _finish_infeasible(self) -> None:
        self._status, self._known.bound = "infeasible", -inf

    def _now(self) -> Incumbent:
        """What is known at this moment, in the middle of a round too. Looking changes nothing."""
        if self._status != "running":
            return self._known
        now = self._known.copy()
        self._gather(now)
        self._known.points = list(now.points)  # events are handed out once
        return now

    def progress(self) -> Progress:
        now = self._now()
        return Progress(now.seconds(), self._iterations, known(now.score), known(now.bound))

    def result(self) -> Result:
        now = self._now()
        return Result(
            self.settings.method,
            self._status,
            now.labels,
            known(now.score),
            now.bound if now.bound < inf else None,
            self._iterations,
            now.seconds(),
            self._setup_seconds,
            self.settings.threads,
            self.settings.seed,
            now.trace(),
        )

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        self._known.improve(labels)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # presolve changes the model that messages are about

    def update(self, graph: FactorGraph) -> None:
        labels = self._now().labels
        self._begin(graph, clock.now())
        if labels is not None:
            self.offer(labels)


def _is_large(model: Model, states: float) -> bool:
    return states > LARGE_STATES or model.n_factors > MANY_FACTORS
