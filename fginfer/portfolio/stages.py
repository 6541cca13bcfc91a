"""The stages of method="auto", from first to last. What single members do in steps 1 and 2 is in opening.py, rounds
are in run.py; when members join a part, and how much they work, they say themselves (members/).

1. Tiny models: some iterations of branch and bound, before anything else is set up. Most end here.
   Others: a labeling by coordinate ascent, within milliseconds. Where hard constraints stand against it, a search
   for a feasible one that learns from conflicts; what it does not find at once it goes on looking for in step 6.
   Constraints are searched as they were said, beside their tables, here or after 2, and from then on in every round.
2. A few sweeps of TRW-S, more of them where the gap is small: tight relaxations end here. Large models begin with them
   instead of ascent, and go on from there unless presolve removes much. Penalties far above all other costs are taken
   for constraints that the same search may meet. Then short runs of branch and bound, from the messages of the sweeps,
   and, on small models, of edac on the model as it is, edac first where there are few labelings; other easy models end
   here, and what is likely to end soon is gone on with. Where factors have more than two variables ADMM gets a turn of
   the sweeps' work, from their messages: if its bound is better, it goes on instead of them, after the proofs.
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
   whose proof makes no progress leaves it little work and gets another relaxation: slabs where the gap is large and the
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
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from math import inf

from fginfer.core.exact import Component, split
from fginfer.core.model import Model
from fginfer.core.presolve import Presolved
from fginfer.crew import Task
from fginfer.engine import Settings
from fginfer.errors import ModelError
from fginfer.lower import Lowered
from fginfer.portfolio.division import Division
from fginfer.portfolio.known import Given
from fginfer.portfolio.learning import Learning
from fginfer.portfolio.members.proof import Proof
from fginfer.portfolio.members.relaxation import Sweeps
from fginfer.portfolio.opening import (
    Opening,
    Rival,
    feasible_labeling,
    first_labeling,
    first_sweeps,
    go_on_with,
    make_rival,
    prove_at_once,
    sweep_while_near,
)
from fginfer.portfolio.part import Part
from fginfer.portfolio.run import Options, Run
from fginfer.portfolio.team import Team, Trial
from fginfer.portfolio.threads import Threads

log = logging.getLogger("fginfer")


class Policy(Run):
    """A run, and its stages in their order. `step` goes on to the next pause."""

    def __init__(
        self, given: Given, settings: Settings, options: Options, threads: Threads, origin: Lowered | None = None
    ) -> None:
        super().__init__(given, settings, options, threads)
        if origin is not None:
            self.learning = Learning(origin, given, self.settings)
        self._steps = self._stages()

    def step(self) -> None:
        """Works until it may pause; a pause changes nothing but the time."""
        end = object()
        if next(self._steps, end) is end and self.status == "running":
            self.status = "converged"  # there is nothing more to try

    def cancel(self) -> None:
        """What is under way on other threads is not needed any more."""
        self.reduction.cancel()

    def forget(self) -> None:
        """Nobody will ask any more: members and messages go."""
        self.cancel()
        self.division = self.sweeps = self.proven_by = self.messages = None
        self._steps = iter(())

    @property
    def memory(self) -> int:
        """Bytes that the members at work take."""
        parts = [] if self.division is None else self.division.parts
        members = [m for part in parts for m in part.members]
        return sum(m.memory for m in (members if self.sweeps is None else [self.sweeps, *members]))

    def _stages(self) -> Iterator[None]:
        before = BeforePresolve(self)
        for stage in before.stages():
            yield from stage()
            if before.ends(stage):
                self.settle()
            if self.status != "running":
                return
        yield from reduce_and_divide(self)
        self.settle()
        while self.status == "running":
            yield from self.round()
            if self.status == "running":
                yield from self.learn()
            if self.status != "running":
                return
            self.iterations += 1
            limit = self.settings.max_iterations
            if limit is not None and self.iterations >= limit:
                self.gather(self.known, fully=True)
                self.status = "iteration_limit"
            yield


class BeforePresolve:
    """Easy models end here."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._trial: Task[Trial] | None = None  # the proofs of step 2, made beside step 1
        self._begun: Proof | None = None  # the proof of a tiny model, until step 2 goes on with it
        self._rival: Rival | None = None  # a rival of the sweeps of step 2
        self._has_less = False  # presolve is known to leave so little that the model as it is needs no more looks

    def stages(self) -> Iterator[Callable[[], Iterator[None]]]:
        """One after the other, while nothing is decided."""
        run = self._run
        if run.settings.threads > 1 and run.size.is_small and not (run.size.is_sparse or run.threads.at_once):
            self._trial = run.threads.submit(self._make_trial)
        yield self._first_labeling
        if run.known.labels is None and run.learning is not None and run.learning.is_quick:
            yield self._learn
        yield self._feasible_labeling
        yield self._quick_sweeps
        yield self._learn
        yield self._avoid_penalties
        yield self._quick_proof
        yield self._go_on_with_rival

    def ends(self, stage: Callable[[], Iterator[None]]) -> bool:
        """May the gap after a stage be the end? A small one after sweeps is no reason not to try a proof."""
        run = self._run
        return stage != self._quick_sweeps or run.known.proven or run.settings.gap > run.rules.proof_gap

    def _first_labeling(self) -> Iterator[None]:
        run = self._run
        if run.model.states <= run.rules.tiny_states and run.model.n_variables <= run.rules.tiny_states:
            self._begun = Proof(run.model, run.for_proofs())
            bound = yield from prove_at_once(self._begun, run.known, run.deadline)
            if bound is not None:
                run.finish_infeasible(bound)
        elif run.size.is_huge:
            if not run.size.begins_with_unaries:
                run.known.improve(run.model.unary_labels(), by="unaries")
        else:
            sweeps_are_next = run.size.relaxation == "trws"  # which find better labelings soon
            if sweeps_are_next:
                run.known.improve(run.model.unary_labels(), by="unaries")
            if not sweeps_are_next or run.known.labels is None:
                yield from self._open_with(first_labeling, run.own)

    def _learn(self) -> Iterator[None]:
        """Constraints as they were said: puzzles end here, and what is short of labelings gets one."""
        yield from self._run.learn(self._run.rules.learning_first)

    def _feasible_labeling(self) -> Iterator[None]:
        """Hard constraints that coordinate ascent does not meet: a short search by learning from conflicts."""
        run = self._run
        if run.known.labels is None and not run.size.is_huge:
            work = run.rules.clauses_first if run.size.few_labelings else run.rules.clauses_work
            yield from self._open_with(partial(feasible_labeling, first=work))

    def _quick_sweeps(self) -> Iterator[None]:
        run, size = self._run, self._run.size
        soon = size.is_small and size.pass_work <= run.rules.sweeps_pass
        if run.known.labels is not None and (soon or (size.is_sparse and not size.is_huge)):
            yield from self._sweep_while_near()
        elif size.relaxation == "trws" and not size.is_huge:
            yield from self._sweep_a_large_model()
        run.threads.make_room([])

    def _sweep_while_near(self) -> Iterator[None]:
        run, size = self._run, self._run.size
        if not size.is_sparse:
            self._presolve_beside()
        is_reduced = self._is_reduced if run.reduction.is_fixed else None
        threads = run.settings.threads if size.pass_work > run.rules.worth_threads else 1
        sweeps = Sweeps(run.model, run.for_proofs(), threads=threads)
        run.threads.make_room([sweeps])

        def rival() -> Rival | None:
            self._rival = make_rival(run.model, run.own, sweeps.engine.messages())
            return self._rival

        bound = yield from sweep_while_near(sweeps, run.known, run.deadline, size.is_crowded, is_reduced, rival)
        if bound is not None:
            run.finish_infeasible(bound)
        elif run.known.proven or run.known.gap <= run.settings.gap:
            run.proven_by = sweeps
        if bound is None and sweeps.running and size.is_small:
            ahead = self._rival.member if self._rival is not None and self._rival.leads else sweeps
            run.messages = ahead.engine.messages()

    def _sweep_a_large_model(self) -> Iterator[None]:
        run = self._run
        run.sweeps = Sweeps(run.model, run.own, threads=run.settings.threads)
        if run.known.labels is not None:  # else it looks for a feasible one of its own
            run.sweeps.offer(run.known.labels)
        run.threads.make_room([run.sweeps])
        crowded, beside = run.size.is_crowded, self._presolve_beside
        bound = yield from first_sweeps(run.sweeps, run.known, run.deadline, beside, crowded)
        if bound is not None:
            run.finish_infeasible(bound)
        elif run.known.gap > run.rules.loose and not run.is_hopeless:  # then the search, which is next, begins with it
            yield from self._open_with(first_labeling, run.own)

    def _avoid_penalties(self) -> Iterator[None]:
        """Large finite penalties are often constraints in disguise. What meets them all is hard to find by ascent."""
        if self._run.known.labels is not None and self._run.size.is_small:
            yield from self._open_with(feasible_labeling)

    def _open_with(self, method: Opening, settings: Settings | None = None) -> Iterator[None]:
        run = self._run
        bound = yield from method(run.model, settings or run.for_proofs(), run.known, run.deadline)
        if bound is not None:
            run.finish_infeasible(bound)

    def _make_trial(self) -> Trial:
        """Takes nothing from what is known: it can be made at any time."""
        begun, self._begun = self._begun, None
        proof = Trial(self._run.model, None, self._run.for_proofs(), begun)
        proof.prepare()
        return proof

    def _quick_proof(self) -> Iterator[None]:
        """Both proofs on the model as it is: easy models are done before presolve has looked at them."""
        run, threads = self._run, self._run.threads
        if not run.size.is_small or run.is_hopeless or self._has_less:
            return
        begun, self._trial = self._trial, None
        proof = yield from (threads.aside(self._make_trial) if begun is None else threads.wait_for(begun))
        run.division = Division(run.model, [proof])
        proof.start_from(run.messages)
        if run.known.labels is not None:
            proof.offer(run.known.labels, run.known.score, run.known.found_by)
        work = max(run.rules.quick_work, run.rules.quick_passes * run.size.pass_work)
        more = repeat(1.0, int(run.rules.quick_more / work) if work > 0 else 0)
        turns = run.rules.quick_first, run.rules.quick_second, run.rules.quick_third
        for number, part in enumerate(chain(turns, more)):
            if number >= len(turns) and not proof.is_worth_more:
                break
            yield from run.round(part * work)
            if run.status != "running":
                return

    def _go_on_with_rival(self) -> Iterator[None]:
        """Where no proof was near, the relaxation that got on best, and another proof from its messages."""
        run, rival = self._run, self._rival
        if rival is None or not rival.leads or self._has_less:
            return
        yield from go_on_with(rival, run.known, run.deadline)
        run.settle()
        if run.status == "running" and run.size.is_small:
            run.messages = rival.member.engine.messages()
            yield from self._quick_proof()

    def _presolve_beside(self) -> None:
        """From here on presolve may go on at any time: it looks at what is known now, whenever it begins."""
        run = self._run
        if run.options.presolve and run.size.pass_work > run.rules.worth_beside:
            run.reduction.begin(max(run.known.score, run.known.cutoff))

    def _is_reduced(self) -> Generator[None, None, bool]:
        """Has presolve a model so much smaller that it is worth more than what sweeps know about this one?"""
        presolved = yield from self._run.reduction.finish(self._run.reduction.allowed)
        if presolved is not None:
            is_small = presolved.model.pass_work <= self._run.rules.reduced * self._run.model.pass_work
            self._has_less = presolved.infeasible or is_small
        return self._has_less


def reduce_and_divide(run: Run) -> Iterator[None]:
    """From here on the run has teams at work on the parts of what presolve leaves, or of the model as it is."""
    presolved, least, whole = None, -inf, run.size.is_huge
    if run.options.presolve and not (run.size.is_huge or run.is_hopeless):
        presolved = yield from run.reduction.finish(max(run.known.score, run.known.cutoff))
        run.reduction.forget()
    if presolved is not None:
        log.info("%s", presolved.log_line())
        if presolved.statistics.penalties:
            least = run.reduction.allowed
        if presolved.infeasible:
            run.finish_infeasible(least, by="presolve")
            return
        if run.sweeps is not None and presolved.model.pass_work > run.rules.reduced * run.model.pass_work:
            presolved, least = None, -inf  # what the first sweeps have done is worth more
        elif _is_kept(run, presolved):
            presolved, least = None, -inf  # what the first proofs have done is worth more
        elif _is_near(run, presolved):
            presolved, least, whole = None, -inf, True  # and what the sweeps before them have
    run.division = yield from _divide(run, presolved, least, whole)
    if run.division.presolved is not None:
        run.ledger.use_presolve()
    for part in run.division.parts:
        yield from run.threads.aside(part.prepare)
    if run.known.labels is not None:
        run.division.offer(run.known.labels, run.known.score, run.known.found_by)
    run.setup_seconds = run.known.seconds()
    if not run.size.is_huge:
        run.combine()


def _is_kept(run: Run, presolved: Presolved) -> bool:
    """Is it the model as it was, but for little, with proofs of it under way? Parts of it would need their own."""
    if run.division is None or presolved.statistics.penalties:
        return False
    return presolved.model.states >= run.rules.kept * run.model.states and len(split(run.model)) == 1


def _is_near(run: Run, presolved: Presolved) -> bool:
    """Have sweeps left a small gap, and presolve much of the model? It would have to be closed again."""
    if run.messages is None or presolved.statistics.penalties:
        return False
    near = run.known.bound - run.known.score <= run.rules.near_proof * max(run.known.unit, abs(run.known.score))
    return near and presolved.model.states >= run.rules.kept_near * run.model.states


def _divide(run: Run, presolved: Presolved | None, least: float, whole: bool) -> Generator[None, None, Division]:
    """What is left, in connected parts, or as a whole."""
    model = run.model if presolved is None else presolved.model
    parts = None if whole else (yield from run.threads.aside(lambda: _parts_of(model)))
    if parts is None:
        presolved, least, model = None, -inf, run.model
    if parts is None or len(parts) == 1:
        division = Division(run.model, [], presolved, least=least)
        own = replace(run.own, cutoff=division.into(run.own.cutoff))
        team = Team(model, None, own, run.options.memory)
        division.parts = [team]
        if division.is_whole:
            team.messages = run.messages
            proofs = [] if run.division is None else run.division.parts[0].members
            team.begun = [*([] if run.sweeps is None else [run.sweeps]), *proofs]
    else:
        # Gaps of parts could add up to more than the gap allowed, and what a part may cost depends on the others.
        exact = replace(run.own, gap=0.0, cutoff=-inf)
        teams: list[Part] = [Team(c.model, c.variables, exact, run.options.memory) for c in parts]
        division = Division(run.model, teams, presolved, model.constant, least)
    run.sweeps = None  # elsewhere its messages are about another model
    return division


def _parts_of(model: Model) -> list[Component] | None:
    """Its connected parts; None where solvers take the model and not these: what scores are seen beside is in none."""
    try:
        parts = split(model)
        if not all(m.has_unit for m in ([part.model for part in parts] if len(parts) > 1 else [model])):
            return None
    except ModelError:
        return None
    return parts
