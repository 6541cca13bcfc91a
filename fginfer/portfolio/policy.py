"""The policy of method="auto", from first to last. Who works on a part of a model, and how much, is in team.py and
shares.py.

1. Tiny models: some iterations of branch and bound, before anything else is set up. Most end here.
   Others: a labeling by coordinate ascent, within milliseconds. Where hard constraints stand against it, a search
   for a feasible one that learns from conflicts; what it does not find at once it goes on looking for in step 6.
2. A few sweeps of TRW-S, more of them where the gap is small: tight relaxations end here. Large models begin with them
   instead of ascent, and go on from there unless presolve removes much. Penalties far above all other costs are taken
   for constraints that the same search may meet. Then short runs of branch and bound, from the messages of the sweeps,
   and, on small models, of edac on the model as it is, edac first where there are few labelings; other easy models end
   here, and what is likely to end soon is gone on with.
3. Presolve: exact reductions with a way back. What is left falls into connected parts. Where it changes next to nothing
   the proofs of step 2 go on instead. Of a model of a million entries or more it is asked after the first sweeps of
   step 2, and if it leaves much less, that is gone on with at once.
4. Every part gets a portfolio of members: a *proof* (branch and bound, whose root is TRW-S) and a *search* for better
   labelings. Large parts get TRW-S alone instead of the proof. Parts with very large tables get gdmm, since one pass
   over them would cost more than its whole run.
5. A small part that is cheap to eliminate gets nothing but elimination. A part in which labels exclude each other in
   cliques gets a proof that sees them, one of binary variables bounds from its frustrated cycles. One that is not
   solved after a few rounds gets edac as another proof (one with few labelings at once), Russian dolls, which keep
   little work unless their bound is ahead, and elimination as another member where its treewidth allows it. A part
   whose proof does not get on leaves it little work, and gets another relaxation: slabs where the gap is large and the
   part sparse enough, else gdmm. A proof that is likely to end soon, by how fast it is done with branches, has most of
   the work. On dense graphs of binary variables, where bounds may say nothing, 2 is cut short, 3 is left out, and
   nearly all work is the search's.
6. Members work in rounds. A round gives every member of every part the same amount of work, counted in table entries;
   then the best labeling and the best bound of a part are handed to its members. Rounds grow from a fraction of a
   millisecond to some tens of them. With several threads the members of a round run at the same time: what they do does
   not depend on it.

Nothing is decided by the clock, which only says when to stop.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, repeat
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.exact import Component, split
from fginfer.core.model import Model
from fginfer.core.presolve import Presolved
from fginfer.crew import Task
from fginfer.engine import Settings
from fginfer.errors import ModelError
from fginfer.portfolio.division import Division
from fginfer.portfolio.given import Given
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.member import Member, Proof, Sweeps
from fginfer.portfolio.opening import (
    CLAUSES_FIRST,
    CLAUSES_WORK,
    HOPELESS,
    LOOSE,
    SWEEPS_PASS,
    WORTH_THREADS,
    Opening,
    feasible_labeling,
    first_labeling,
    first_sweeps,
    prove_at_once,
    sweep_while_near,
)
from fginfer.portfolio.part import Part
from fginfer.portfolio.reduction import Reduction
from fginfer.portfolio.shares import NEAR_PROOF
from fginfer.portfolio.size import Size
from fginfer.portfolio.team import Team
from fginfer.portfolio.trial import Trial
from fginfer.portfolio.workers import Workers

log = logging.getLogger("fginfer")

SMALL_STATES = 1e5  # of all tables: a pass takes a tenth of a millisecond, so that nothing takes long
TINY_STATES = 20000  # a few iterations of branch and bound take less than finding out what kind of model it is
KEPT = 0.95  # of the states of a small model: where presolve leaves as many, the proofs under way go on instead
KEPT_NEAR = 0.8  # the same where sweeps have left a small gap: they would have to begin again, too
REDUCED = 0.8  # of a large model's work: where presolve leaves more, its first sweeps are gone on with instead
PROOF_GAP = 1e-6  # allowed by default: who allows more does not mind a proof
WORTH_BESIDE = 1e6  # entries of a pass: presolve takes long enough to begin beside the sweeps, with what is known then
QUICK_WORK, QUICK_PASSES = 1.2e7, 6.0  # of the proof before presolve: at least so much work, and passes over the tables
QUICK_ROUNDS = 0.1, 0.3, 0.6  # by turns with the other proof, so that neither waits long for its end
QUICK_MORE = 5e7  # work of some more of them, for as long as one is likely to come to it soon: it may not


@dataclass(frozen=True)
class Options:
    """What a caller may say about auto."""

    presolve: bool = True
    memory: float = 1 << 30  # bytes that elimination may use


def _parts_of(model: Model) -> list[Component] | None:
    """Its connected parts; None where solvers take the model and not these: what scores are seen beside is in none."""
    try:
        parts = split(model)
        if not all(m.has_unit for m in ([part.model for part in parts] if len(parts) > 1 else [model])):
            return None
    except ModelError:
        return None
    return parts


class Policy:
    """The stages of a run on one model, and what is known after each. `step` goes on to the next pause."""

    def __init__(self, given: Given, settings: Settings, options: Options, workers: Workers) -> None:
        self.status = "running"
        self.iterations = 0  # rounds
        self.setup_seconds = 0.0
        self.division: Division | None = None  # into parts that are worked on
        self.known = Incumbent(given.model, settings.start_time, given.into(settings.cutoff))
        self._given, self._model = given, given.model
        self._settings, self._options = settings, options
        same = self.known.cutoff == settings.cutoff
        self._own = settings if same else replace(settings, cutoff=self.known.cutoff)  # for members: in that unit
        self._workers = workers
        workers.at_once = self._model.states < SMALL_STATES
        self._trial: Task[Trial] | None = None  # of step 2, made beside step 1
        self._begun: Proof | None = None  # of a tiny model, until step 2 goes on with it
        self._messages: NDArray[np.float64] | None = None  # of the sweeps of a small one, for the proof that is next
        self._sweeps: Sweeps | None = None  # of a large model, from step 2 on
        self._reduction = Reduction(self._model, workers)  # of step 3, which may begin beside step 2
        self._has_less = False  # presolve is known to leave so little that the model as it is needs no more looks
        self._steps = self._stages()

    @cached_property
    def _size(self) -> Size:
        """Looked at when it is first asked for: tiny models end before."""
        return Size(self._model)

    def step(self) -> None:
        """Works until it may pause; a pause changes nothing but the time."""
        end = object()
        if next(self._steps, end) is end and self.status == "running":
            self.status = "converged"  # there is nothing more to try

    def cancel(self) -> None:
        """What is under way on other threads is not needed any more."""
        self._reduction.cancel()

    @property
    def memory(self) -> int:
        """Bytes that the members at work take."""
        parts = [] if self.division is None else self.division.parts
        members = [m for part in parts for m in part.members if isinstance(m, Member)]
        return sum(int(m.engine.info.memory) for m in (members if self._sweeps is None else [self._sweeps, *members]))

    def _stages(self) -> Iterator[None]:
        if self._settings.threads > 1 and self._size.is_small and not (self._size.is_sparse or self._workers.at_once):
            self._trial = self._workers.submit(self._make_trial)
        quick = self._feasible_labeling, self._quick_sweeps, self._avoid_penalties, self._quick_proof
        for stage in (self._first_labeling, *quick, self._reduce):
            yield from stage()
            if stage != self._quick_sweeps or self.known.proven or self._settings.gap > PROOF_GAP:
                self._settle()  # a small gap after sweeps is no reason not to try a proof
            if self.status != "running":
                return
        while self.status == "running":
            yield from self._round()
            if self.status != "running":
                return
            self.iterations += 1
            limit = self._settings.max_iterations
            if limit is not None and self.iterations >= limit:
                self.gather(self.known, fully=True)
                self.status = "iteration_limit"
            yield

    # -- steps 1 and 2: before anybody has looked closely -------------------------------------------------------

    def _first_labeling(self) -> Iterator[None]:
        if self._model.states <= TINY_STATES:
            self._begun = Proof(self._model, self._for_proofs())
            bound = yield from prove_at_once(self._begun, self.known, self._deadline)
            if bound is not None:
                self._finish_infeasible(bound)
        elif self._size.is_huge:
            if not self._size.begins_with_unaries:
                self.known.improve(self._model.unary_labels())
        else:
            sweeps_are_next = self._size.relaxation is Sweeps  # which find better labelings soon
            if sweeps_are_next:
                self.known.improve(self._model.unary_labels())
            if not sweeps_are_next or self.known.labels is None:
                yield from self._open_with(first_labeling, self._own)

    def _feasible_labeling(self) -> Iterator[None]:
        """Hard constraints that coordinate ascent does not meet: a short search by learning from conflicts."""
        if self.known.labels is None and not self._size.is_huge:
            work = CLAUSES_FIRST if self._size.few_labelings else CLAUSES_WORK
            yield from self._open_with(partial(feasible_labeling, first=work))

    def _quick_sweeps(self) -> Iterator[None]:
        size = self._size
        soon = size.is_small and size.pass_work <= SWEEPS_PASS
        if self.known.labels is not None and (soon or (size.is_sparse and not size.is_huge)):
            if not size.is_sparse:
                self._presolve_beside()
            is_reduced = self._is_reduced if self._reduction.is_fixed else None
            threads = self._settings.threads if size.pass_work > WORTH_THREADS else 1
            sweeps = Sweeps(self._model, self._for_proofs(), threads=threads)
            self._workers.make_room([sweeps])
            bound = yield from sweep_while_near(sweeps, self.known, self._deadline, size.is_crowded, is_reduced)
            if bound is not None:
                self._finish_infeasible(bound)
            elif sweeps.running and size.is_small:
                self._messages = sweeps.engine.messages()
        elif size.relaxation is Sweeps and not size.is_huge:
            self._sweeps = Sweeps(self._model, self._own, threads=self._settings.threads)
            if self.known.labels is not None:  # else it looks for a feasible one of its own
                self._sweeps.offer(self.known.labels)
            self._workers.make_room([self._sweeps])
            crowded, beside = size.is_crowded, self._presolve_beside
            bound = yield from first_sweeps(self._sweeps, self.known, self._deadline, beside, crowded)
            if bound is not None:
                self._finish_infeasible(bound)
            elif self.known.gap > LOOSE and not self._is_hopeless:  # then the search, which is next, begins with it
                yield from self._open_with(first_labeling, self._own)
        self._workers.make_room([])

    def _avoid_penalties(self) -> Iterator[None]:
        """Large finite penalties are often constraints in disguise. What meets them all is hard to find by ascent."""
        if self.known.labels is not None and self._size.is_small:
            yield from self._open_with(feasible_labeling)

    @property
    def _is_hopeless(self) -> bool:
        """Proofs and presolve would take the time of the search, and not get on."""
        return self._size.is_crowded and self.known.gap > HOPELESS

    def _deadline(self) -> float:
        return self._workers.deadline

    def _for_proofs(self) -> Settings:
        return self._own if self._settings.gap > PROOF_GAP else replace(self._own, gap=0.0)

    def _open_with(self, method: Opening, settings: Settings | None = None) -> Iterator[None]:
        own = settings or self._for_proofs()
        bound = yield from method(self._model, own, self.known, self._deadline)
        if bound is not None:
            self._finish_infeasible(bound)

    def _make_trial(self) -> Trial:
        """Takes nothing from what is known: it can be made at any time."""
        begun, self._begun = self._begun, None
        proof = Trial(self._model, None, self._for_proofs(), begun)
        proof.prepare()
        return proof

    def _quick_proof(self) -> Iterator[None]:
        """Both proofs on the model as it is: easy models are done before presolve has looked at them."""
        if not self._size.is_small or self._is_hopeless or self._has_less:
            return
        begun, self._trial = self._trial, None
        workers = self._workers
        proof = yield from (workers.aside(self._make_trial) if begun is None else workers.wait_for(begun))
        self.division = Division(self._model, [proof])
        proof.start_from(self._messages)
        if self.known.labels is not None:
            proof.offer(self.known.labels, self.known.score)
        work = max(QUICK_WORK, QUICK_PASSES * self._size.pass_work)
        more = repeat(1.0, int(QUICK_MORE / work) if work > 0 else 0)
        for number, part in enumerate(chain(QUICK_ROUNDS, more)):
            if number >= len(QUICK_ROUNDS) and not proof.gets_on:
                break
            yield from self._round(part * work)
            if self.status != "running":
                return

    # -- step 3: what is left, in parts -------------------------------------------------------------------------

    def _presolve_beside(self) -> None:
        """From here on presolve may go on at any time: it looks at what is known now, whenever it begins."""
        if self._options.presolve and self._size.pass_work > WORTH_BESIDE:
            self._reduction.begin(max(self.known.score, self.known.cutoff))

    def _is_reduced(self) -> Generator[None, None, bool]:
        """Has presolve a model so much smaller that it is worth more than what sweeps know about this one?"""
        presolved = yield from self._reduction.finish(self._reduction.allowed)
        if presolved is not None:
            is_small = presolved.model.pass_work <= REDUCED * self._model.pass_work
            self._has_less = presolved.infeasible or is_small
        return self._has_less

    def _reduce(self) -> Iterator[None]:
        presolved, least, whole = None, -inf, self._size.is_huge
        if self._options.presolve and not (self._size.is_huge or self._is_hopeless):
            presolved = yield from self._reduction.finish(max(self.known.score, self.known.cutoff))
            self._reduction.forget()
        if presolved is not None:
            log.info("%s", presolved.log_line())
            if presolved.statistics.penalties:
                least = self._reduction.allowed
            if presolved.infeasible:
                self._finish_infeasible(least)
                return
            if self._sweeps is not None and presolved.model.pass_work > REDUCED * self._model.pass_work:
                presolved, least = None, -inf  # what the first sweeps have done is worth more
            elif self._is_kept(presolved):
                presolved, least = None, -inf  # what the first proofs have done is worth more
            elif self._is_near(presolved):
                presolved, least, whole = None, -inf, True  # and what the sweeps before them have
        self.division = yield from self._divide(presolved, least, whole)
        for part in self.division.parts:
            yield from self._workers.aside(part.prepare)
        if self.known.labels is not None:
            self.division.offer(self.known.labels, self.known.score)
        self.setup_seconds = self.known.seconds()
        if not self._size.is_huge:
            self._combine()

    def _is_kept(self, presolved: Presolved) -> bool:
        """Is it the model as it was, but for little, with proofs of it under way? Parts of it would need their own."""
        if self.division is None or presolved.statistics.penalties:
            return False
        return presolved.model.states >= KEPT * self._model.states and len(split(self._model)) == 1

    def _is_near(self, presolved: Presolved) -> bool:
        """Have sweeps left a small gap, and presolve much of the model? It would have to be closed again."""
        if self._messages is None or presolved.statistics.penalties:
            return False
        near = self.known.bound - self.known.score <= NEAR_PROOF * max(self.known.unit, abs(self.known.score))
        return near and presolved.model.states >= KEPT_NEAR * self._model.states

    def _divide(self, presolved: Presolved | None, least: float, whole: bool) -> Generator[None, None, Division]:
        """What is left, in connected parts, or as a whole."""
        model = self._model if presolved is None else presolved.model
        parts = None if whole else (yield from self._workers.aside(lambda: _parts_of(model)))
        if parts is None:
            presolved, least, model = None, -inf, self._model
        if parts is None or len(parts) == 1:
            division = Division(self._model, [], presolved, least=least)
            own = replace(self._own, cutoff=division.into(self._own.cutoff))
            team = Team(model, None, own, self._options.memory)
            division.parts = [team]
            if division.is_whole:
                team.messages = self._messages
                proofs = [] if self.division is None else self.division.parts[0].members
                team.begun = [*([] if self._sweeps is None else [self._sweeps]), *proofs]
        else:
            # Gaps of parts could add up to more than the gap allowed, and what a part may cost depends on the others.
            exact = replace(self._own, gap=0.0, cutoff=-inf)
            teams: list[Part] = [Team(c.model, c.variables, exact, self._options.memory) for c in parts]
            division = Division(self._model, teams, presolved, model.constant, least)
        self._sweeps = None  # elsewhere its messages are about another model
        return division

    # -- steps 4 to 6: rounds, and what has come of them --------------------------------------------------------

    def _round(self, work: float | None = None) -> Iterator[None]:
        """Work for the members of all parts, and what has come of it."""
        assert self.division is not None
        parts = self.division.running
        for part in parts:
            yield from part.begin_round(self._workers, work)
        while any(part.busy for part in parts):
            self._workers.work_off(parts)
            if any(part.busy for part in parts):
                yield
        for part in parts:
            part.end_round()
        self._combine()

    def _combine(self) -> None:
        """After a round: from the parts to the whole."""
        assert self.division is not None
        lost = next((p for p in self.division.parts if p.status == "infeasible"), None)
        if lost is not None:
            self._finish_infeasible(self.division.lost_bound(lost), certain=self.division.error == 0)
            return
        self.gather(self.known, fully=False)
        if not self.division.running:
            self.status = "converged"
        self._settle()

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
        near = 2 * max(self._settings.gap, PROOF_GAP) * max(self.known.unit, abs(score)) + 2 * division.error
        return bound - score <= near or not division.running

    def _settle(self) -> None:
        """Is what is known good enough?"""
        if self.status in ("running", "converged"):
            self.known.close_last_step()
            if self.known.proven:
                self.status = "optimal" if self.known.wanted else "infeasible"
            elif self.known.gap <= self._settings.gap and self._given.gap(self.known) <= self._settings.gap:
                self.status = "gap_reached"

    def _finish_infeasible(self, bound: float, certain: bool = True) -> None:
        """No labeling is above the cutoff; unless that is `certain`, the bound has to say so, too."""
        certain = certain or self.known.cutoff == -inf
        self.status, self.known.bound = "infeasible", bound if certain else min(bound, self.known.bound)
        if not certain:
            self.known.close_last_step()
            self.status = "infeasible" if self.known.proven else "converged"
