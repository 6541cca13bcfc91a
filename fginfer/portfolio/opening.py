"""What auto tries before it looks at a model closely: methods that solve many models by themselves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.known import Incumbent
from fginfer.portfolio.members.member import Member
from fginfer.portfolio.members.proof import Proof
from fginfer.portfolio.members.relaxation import Alternating, Sweeps
from fginfer.portfolio.members.search import Ascent, Clauses

log = logging.getLogger("fginfer")

# Improves what is known, and yields when the deadline has passed. Returns a bound if no labeling is above the cutoff.
Opening = Callable[[Model, Settings, Incumbent, Callable[[], float]], Generator[None, None, float | None]]


class Rival:
    """ADMM, by turns as long as those of the sweeps."""

    def __init__(self, member: Alternating) -> None:
        self.member = member
        self.turn = 0.0  # work
        self.leads = False  # was its bound better than that of the sweeps after the first turn?
        self._gaps: list[float] = []  # before each of the others

    def takes_another_turn(self) -> bool:
        """Has it closed a part of the gap of late? Its bound does not fall in every turn, and labelings come late."""
        if not (self.leads and self.member.running):
            return False
        self._gaps.append(self.member.bound - self.member.score)
        turns, leaves = self.member.rules.rival_turns, self.member.rules.rival_leaves
        return len(self._gaps) <= turns or self._gaps[-1] <= leaves * self._gaps[-1 - turns]


def make_rival(model: Model, settings: Settings, messages: NDArray[np.float64] | None) -> Rival | None:
    """From the messages of sweeps, for models with factors of more than two variables: on pairs sweeps are faster, and
    do not stall as far from the optimum of the relaxation."""
    if model.max_arity <= 2 or messages is None:
        return None
    try:
        member = Alternating(model, settings)
    except (SolverError, MemoryError) as error:
        log.debug("no rival: %s", error)
        return None
    member.start_from(messages)
    return Rival(member)


def prove_at_once(proof: Proof, known: Incumbent, deadline: Callable[[], float]) -> Generator[None, None, float | None]:
    """A short proof without rounds and parts."""
    if known.labels is not None:
        proof.engine.offer(known.labels)
    proof.engine.native.pause_at(int(proof.rules.tiny_work))
    yield from _run(proof, proof.rules.tiny_iterations, known, deadline)
    _take(proof, known)
    return proof.bound if proof.engine.status == "infeasible" else None


def first_labeling(
    model: Model, settings: Settings, known: Incumbent, deadline: Callable[[], float]
) -> Generator[None, None, float | None]:
    """One ascent, within milliseconds."""
    first = Ascent(model, settings)
    yield from _run(first, 1, known, deadline)
    _take(first, known)
    return first.bound if first.engine.status == "infeasible" else None


def feasible_labeling(
    model: Model, settings: Settings, known: Incumbent, deadline: Callable[[], float], first: float = inf
) -> Generator[None, None, float | None]:
    """A labeling that meets all hard constraints, by learning from conflicts. Where there is one already: one that does
    not pay the largest penalties either, if costs are of such different sizes."""
    try:
        search = Clauses(model, settings)
    except (SolverError, MemoryError):
        return None
    if known.labels is not None:
        search.engine.offer(known.labels)
    yield from _work(
        search,
        min(first, search.rules.clauses_work) if known.labels is None else search.rules.penalty_work,
        known,
        deadline,
    )
    _take(search, known)
    return search.bound if search.status == "infeasible" else None


def sweep_while_near(
    sweeps: Sweeps,
    known: Incumbent,
    deadline: Callable[[], float],
    crowded: bool,
    is_reduced: Callable[[], Generator[None, None, bool]] | None,
    make_rival: Callable[[], Rival | None],
) -> Generator[None, None, float | None]:
    """TRW-S while the gap is small and the bound makes progress. Where the relaxation is tight it ends there, at a
    fraction of what the root of branch and bound takes. It does not go on for long if presolve has a smaller model, or
    a rival has a better bound after as much work from the same messages."""
    engine, rules, before, gap_before = sweeps.engine, sweeps.rules, inf, inf
    rival: Rival | None = None
    if known.labels is not None:
        engine.offer(known.labels)
    if crowded:
        yield from _run(sweeps, sweeps.rules.crowded_sweeps, known, deadline)
    each = rules.sweeps_a_look
    for end in () if crowded and _is_hopeless(sweeps) else range(each, rules.most_sweeps + 1, each):
        work_before = sweeps.work
        yield from _run(sweeps, end, known, deadline)
        gap, gained, before = sweeps.bound - sweeps.score, before - sweeps.bound, sweeps.bound
        size = max(abs(sweeps.score), engine.info.unit)
        near = gap <= rules.sweeps_gap * size or (gap <= rules.far_gap * size and gap <= rules.falls_to * gap_before)
        gap_before = gap
        if engine.status != "running" or not near or gained < rules.sweeps_gain * gap:
            break
        if end == rules.presolve_after and is_reduced is not None and (yield from is_reduced()):
            break
        if end == rules.rival_sweeps:
            rival = make_rival()
        elif rival is not None and end == rules.rival_sweeps + each:
            _take(sweeps, known)  # first, as where a slice ends: of two labelings alike the sweeps' is kept
            rival.turn = sweeps.work - work_before
            yield from _work(rival.member, rival.turn, known, deadline)
            _take(rival.member, known)
            rival.leads = rival.member.bound < sweeps.bound
            if rival.leads:
                break
    _take(sweeps, known)
    return sweeps.bound if engine.status == "infeasible" else None


def go_on_with(rival: Rival, known: Incumbent, deadline: Callable[[], float]) -> Generator[None, None, None]:
    """For as long as it closes the gap."""
    if known.labels is not None:
        rival.member.offer(known.labels)
    while rival.takes_another_turn():
        yield from _work(rival.member, rival.turn, known, deadline)
        _take(rival.member, known)


def first_sweeps(
    sweeps: Sweeps, known: Incumbent, deadline: Callable[[], float], after_first: Callable[[], None], crowded: bool
) -> Generator[None, None, float | None]:
    """TRW-S on a large model, before anybody looks for what presolve could remove, and for as long as it closes the gap
    quickly: until then nobody else makes as much progress."""
    before = inf
    if crowded:
        yield from _run(sweeps, sweeps.rules.crowded_sweeps, known, deadline)
    each, last = sweeps.rules.first_sweeps, sweeps.rules.last_sweeps
    for end in () if crowded and _is_hopeless(sweeps) else range(each, last + 1, each):
        yield from _run(sweeps, end, known, deadline)
        gap = sweeps.bound - sweeps.score
        loose = gap > sweeps.rules.loose * max(abs(sweeps.score), sweeps.engine.info.unit)
        if end == each and sweeps.engine.status == "running":
            _take(sweeps, known)
            after_first()
        if sweeps.engine.status != "running" or loose or not gap <= sweeps.rules.falls_to * before:
            break
        before = gap
    _take(sweeps, known)
    return sweeps.bound if sweeps.engine.status == "infeasible" else None


def _is_hopeless(sweeps: Sweeps) -> bool:
    return bool(sweeps.bound - sweeps.score > sweeps.rules.hopeless * max(abs(sweeps.score), sweeps.engine.info.unit))


def _run(member: Member, end: int, known: Incumbent, deadline: Callable[[], float]) -> Iterator[None]:
    """Until it is done, has done this many iterations in all, or as much work as it may."""
    engine = member.engine
    while engine.status == "running" and engine.steps < end and not engine.info.paused:
        member.advance(max(0.0, deadline() - clock.now()), end - engine.steps)
        if engine.status == "running" and engine.steps < end and not engine.info.paused:
            _take(member, known, over=False)
            yield


def _work(member: Member, work: float, known: Incumbent, deadline: Callable[[], float]) -> Iterator[None]:
    """Until it is done, or has done so much more."""
    member.owe(work)
    while member.busy:
        member.work_off(deadline())
        if member.busy:
            _take(member, known, over=False)
            yield


def _take(member: Member, known: Incumbent, over: bool = True) -> None:
    """Its labeling, its bound and its trace; `over`: at the end of its turn, and not where a slice ends."""
    labels = member.labels() if member.score > known.score else None  # a copy: of millions it takes part of a second
    known.points += [(t, score, bound) for t, score, bound, _ in member.events().tolist()]
    if labels is not None:
        known.labels, known.score, known.found_by = labels, member.score, member.name
    bound = max(member.bound, known.score)
    member.account.note(labels is not None, bound < known.bound, over)
    if bound < known.bound:
        known.bound, known.bound_by = bound, member.name
