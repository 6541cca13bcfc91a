"""Steps 1 and 2 of a run (policy.py): what is tried on the model as it is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import chain, repeat

from fginfer.crew import Task
from fginfer.engine import Settings
from fginfer.portfolio.division import Division
from fginfer.portfolio.opening import (
    CLAUSES_FIRST,
    CLAUSES_WORK,
    LOOSE,
    SWEEPS_PASS,
    WORTH_THREADS,
    Opening,
    feasible_labeling,
    first_labeling,
    first_sweeps,
    go_on_with,
    prove_at_once,
    sweep_while_near,
)
from fginfer.portfolio.relaxations import Sweeps
from fginfer.portfolio.rival import Rival, make_rival
from fginfer.portfolio.run import PROOF_GAP, Run
from fginfer.portfolio.trees import Proof
from fginfer.portfolio.trial import Trial

TINY_STATES = 20000  # a few iterations of branch and bound take less than finding out what kind of model it is
REDUCED = 0.8  # of a large model's work: where presolve leaves more, its first sweeps are gone on with instead
WORTH_BESIDE = 1e6  # entries of a pass: presolve takes long enough to begin beside the sweeps, with what is known then
QUICK_WORK, QUICK_PASSES = 1.2e7, 6.0  # of the proof before presolve: at least so much work, and passes over the tables
QUICK_ROUNDS = 0.1, 0.3, 0.6  # by turns with the other proof, so that neither waits long for its end
QUICK_MORE = 5e7  # work of some more of them, for as long as one is likely to come to it soon: it may not


class BeforePresolve:
    """Easy models end here."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._trial: Task[Trial] | None = None  # of step 2, made beside step 1
        self._begun: Proof | None = None  # of a tiny model, until step 2 goes on with it
        self._rival: Rival | None = None  # of the sweeps of step 2
        self._has_less = False  # presolve is known to leave so little that the model as it is needs no more looks

    def stages(self) -> Iterator[Callable[[], Iterator[None]]]:
        """One after the other, while nothing is decided."""
        run = self._run
        if run.settings.threads > 1 and run.size.is_small and not (run.size.is_sparse or run.workers.at_once):
            self._trial = run.workers.submit(self._make_trial)
        yield self._first_labeling
        yield self._feasible_labeling
        yield self._quick_sweeps
        yield self._avoid_penalties
        yield self._quick_proof
        yield self._go_on_with_rival

    def ends(self, stage: Callable[[], Iterator[None]]) -> bool:
        """May the gap after a stage be the end? A small one after sweeps is no reason not to try a proof."""
        return stage != self._quick_sweeps or self._run.known.proven or self._run.settings.gap > PROOF_GAP

    def _first_labeling(self) -> Iterator[None]:
        run = self._run
        if run.model.states <= TINY_STATES and run.model.n_variables <= TINY_STATES:
            self._begun = Proof(run.model, run.for_proofs())
            bound = yield from prove_at_once(self._begun, run.known, run.deadline)
            if bound is not None:
                run.finish_infeasible(bound)
        elif run.size.is_huge:
            if not run.size.begins_with_unaries:
                run.known.improve(run.model.unary_labels())
        else:
            sweeps_are_next = run.size.relaxation is Sweeps  # which find better labelings soon
            if sweeps_are_next:
                run.known.improve(run.model.unary_labels())
            if not sweeps_are_next or run.known.labels is None:
                yield from self._open_with(first_labeling, run.own)

    def _feasible_labeling(self) -> Iterator[None]:
        """Hard constraints that coordinate ascent does not meet: a short search by learning from conflicts."""
        run = self._run
        if run.known.labels is None and not run.size.is_huge:
            work = CLAUSES_FIRST if run.size.few_labelings else CLAUSES_WORK
            yield from self._open_with(partial(feasible_labeling, first=work))

    def _quick_sweeps(self) -> Iterator[None]:
        run, size = self._run, self._run.size
        soon = size.is_small and size.pass_work <= SWEEPS_PASS
        if run.known.labels is not None and (soon or (size.is_sparse and not size.is_huge)):
            yield from self._sweep_while_near()
        elif size.relaxation is Sweeps and not size.is_huge:
            yield from self._sweep_a_large_model()
        run.workers.make_room([])

    def _sweep_while_near(self) -> Iterator[None]:
        run, size = self._run, self._run.size
        if not size.is_sparse:
            self._presolve_beside()
        is_reduced = self._is_reduced if run.reduction.is_fixed else None
        threads = run.settings.threads if size.pass_work > WORTH_THREADS else 1
        sweeps = Sweeps(run.model, run.for_proofs(), threads=threads)
        run.workers.make_room([sweeps])

        def rival() -> Rival | None:
            self._rival = make_rival(run.model, run.own, sweeps.engine.messages())
            return self._rival

        bound = yield from sweep_while_near(sweeps, run.known, run.deadline, size.is_crowded, is_reduced, rival)
        if bound is not None:
            run.finish_infeasible(bound)
        elif sweeps.running and size.is_small:
            ahead = self._rival.member if self._rival is not None and self._rival.leads else sweeps
            run.messages = ahead.engine.messages()

    def _sweep_a_large_model(self) -> Iterator[None]:
        run = self._run
        run.sweeps = Sweeps(run.model, run.own, threads=run.settings.threads)
        if run.known.labels is not None:  # else it looks for a feasible one of its own
            run.sweeps.offer(run.known.labels)
        run.workers.make_room([run.sweeps])
        crowded, beside = run.size.is_crowded, self._presolve_beside
        bound = yield from first_sweeps(run.sweeps, run.known, run.deadline, beside, crowded)
        if bound is not None:
            run.finish_infeasible(bound)
        elif run.known.gap > LOOSE and not run.is_hopeless:  # then the search, which is next, begins with it
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
        run, workers = self._run, self._run.workers
        if not run.size.is_small or run.is_hopeless or self._has_less:
            return
        begun, self._trial = self._trial, None
        proof = yield from (workers.aside(self._make_trial) if begun is None else workers.wait_for(begun))
        run.division = Division(run.model, [proof])
        proof.start_from(run.messages)
        if run.known.labels is not None:
            proof.offer(run.known.labels, run.known.score)
        work = max(QUICK_WORK, QUICK_PASSES * run.size.pass_work)
        more = repeat(1.0, int(QUICK_MORE / work) if work > 0 else 0)
        for number, part in enumerate(chain(QUICK_ROUNDS, more)):
            if number >= len(QUICK_ROUNDS) and not proof.gets_on:
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
        if run.options.presolve and run.size.pass_work > WORTH_BESIDE:
            run.reduction.begin(max(run.known.score, run.known.cutoff))

    def _is_reduced(self) -> Generator[None, None, bool]:
        """Has presolve a model so much smaller that it is worth more than what sweeps know about this one?"""
        presolved = yield from self._run.reduction.finish(self._run.reduction.allowed)
        if presolved is not None:
            is_small = presolved.model.pass_work <= REDUCED * self._run.model.pass_work
            self._has_less = presolved.infeasible or is_small
        return self._has_less
