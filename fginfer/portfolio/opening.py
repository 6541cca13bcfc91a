"""What auto tries before it looks at a model closely: methods that solve many models by themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from math import inf

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.member import Member
from fginfer.portfolio.relaxations import Sweeps
from fginfer.portfolio.rival import Rival
from fginfer.portfolio.searches import Ascent, Clauses
from fginfer.portfolio.trees import Proof

# Of branch and bound on models so small that nothing need be known about them: what comes next takes as long as some
# hundred iterations. Networks of 30 variables, 40 random variables of 4 labels (40 models each, ms to all proofs): 48
# and 61 with 40 iterations, 27 and 29 with 80, 24 and 26 with 120; branch and bound alone 21 and 19.
TINY_ITERATIONS, TINY_WORK = 80, 1e6
CLAUSES_WORK = 3e7  # literals: below half a second
CLAUSES_FIRST = 5e6  # where edac is likely to say as soon whether there is a labeling
PENALTY_WORK = 1e7  # the same where hard constraints are met, and penalties that stand for others are paid
SWEEPS_PASS, SWEEPS, MOST_SWEEPS = 3e6, 16, 256  # entries of a model; iterations between two looks, and in all
LONG_SWEEPS = 16  # of a model that presolve has begun with: they take about as long, and it may have more to say
SWEEPS_GAP, SWEEPS_GAIN = 0.05, 0.01  # go on while the gap is so small, and the bound falls by so much of it
FAR_GAP = 0.1  # or so, if it closes quickly (FALLS_TO below)
# With their messages a rival begins, which has to be ahead of the next sixteen after as much work. Half of it saves a
# twentieth where it never is (inpainting), and takes 1.4 to 3.4 times as long on six of nine grids of factors of three.
RIVAL_SWEEPS = 32
FIRST_SWEEPS = 8  # of a large model, by which TRW-S has found what local search would take much longer for, ...
LAST_SWEEPS, FALLS_TO = 64, 0.8  # ... and so many while another eight leave no more than this part of the gap
LOOSE = 0.1  # gap after the first of them, at which ascent has better labelings, and search still better ones
FEW_SWEEPS, HOPELESS = 2, 0.5  # where binary variables have many neighbours: at this gap the relaxation says nothing
WORTH_THREADS = 2e5  # entries of a model: starting threads takes as long as some sweeps over fewer

# Improves what is known, and yields when the deadline has passed. Returns a bound if no labeling is above the cutoff.
Opening = Callable[[Model, Settings, Incumbent, Callable[[], float]], Generator[None, None, float | None]]


def prove_at_once(proof: Proof, known: Incumbent, deadline: Callable[[], float]) -> Generator[None, None, float | None]:
    """A short proof without rounds and parts."""
    if known.labels is not None:
        proof.engine.offer(known.labels)
    proof.engine.native.pause_at(int(TINY_WORK))
    yield from _run(proof, TINY_ITERATIONS, known, deadline)
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
    model: Model, settings: Settings, known: Incumbent, deadline: Callable[[], float], first: float = CLAUSES_WORK
) -> Generator[None, None, float | None]:
    """A labeling that meets all hard constraints, by learning from conflicts. Where there is one already: one that does
    not pay the largest penalties either, if costs are of such different sizes."""
    try:
        search = Clauses(model, settings)
    except (SolverError, MemoryError):
        return None
    if known.labels is not None:
        search.engine.offer(known.labels)
    yield from _work(search, first if known.labels is None else PENALTY_WORK, known, deadline)
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
    """TRW-S for as long as the gap is small and the bound gets on. Where the relaxation is tight it ends there, at a
    fraction of what the root of branch and bound takes. It does not go on for long if presolve has a smaller model, or
    a rival has a better bound after as much work from the same messages."""
    engine, before, gap_before = sweeps.engine, inf, inf
    rival: Rival | None = None
    if known.labels is not None:
        engine.offer(known.labels)
    if crowded:
        yield from _run(sweeps, FEW_SWEEPS, known, deadline)
    for end in () if crowded and _is_hopeless(sweeps) else range(SWEEPS, MOST_SWEEPS + 1, SWEEPS):
        work_before = sweeps.work
        yield from _run(sweeps, end, known, deadline)
        gap, gained, before = sweeps.bound - sweeps.score, before - sweeps.bound, sweeps.bound
        size = max(abs(sweeps.score), engine.info.unit)
        near = gap <= SWEEPS_GAP * size or (gap <= FAR_GAP * size and gap <= FALLS_TO * gap_before)
        gap_before = gap
        if engine.status != "running" or not near or gained < SWEEPS_GAIN * gap:
            break
        if end == LONG_SWEEPS and is_reduced is not None and (yield from is_reduced()):
            break
        if end == RIVAL_SWEEPS:
            rival = make_rival()
        elif rival is not None and end == RIVAL_SWEEPS + SWEEPS:
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
    quickly: until then nobody else gets on as well."""
    before = inf
    if crowded:
        yield from _run(sweeps, FEW_SWEEPS, known, deadline)
    for end in () if crowded and _is_hopeless(sweeps) else range(FIRST_SWEEPS, LAST_SWEEPS + 1, FIRST_SWEEPS):
        yield from _run(sweeps, end, known, deadline)
        gap = sweeps.bound - sweeps.score
        loose = gap > LOOSE * max(abs(sweeps.score), sweeps.engine.info.unit)
        if end == FIRST_SWEEPS and sweeps.engine.status == "running":
            _take(sweeps, known)
            after_first()
        if sweeps.engine.status != "running" or loose or not gap <= FALLS_TO * before:
            break
        before = gap
    _take(sweeps, known)
    return sweeps.bound if sweeps.engine.status == "infeasible" else None


def _is_hopeless(sweeps: Sweeps) -> bool:
    return bool(sweeps.bound - sweeps.score > HOPELESS * max(abs(sweeps.score), sweeps.engine.info.unit))


def _run(member: Member, end: int, known: Incumbent, deadline: Callable[[], float]) -> Iterator[None]:
    """Until it is done, has done this many iterations in all, or as much work as it may."""
    engine = member.engine
    while engine.status == "running" and engine.steps < end and not engine.info.paused:
        engine.run(max(0.0, deadline() - clock.now()), end - engine.steps)
        if engine.status == "running" and engine.steps < end and not engine.info.paused:
            _take(member, known)
            yield


def _work(member: Member, work: float, known: Incumbent, deadline: Callable[[], float]) -> Iterator[None]:
    """Until it is done, or has done so much more."""
    member.owe(work)
    while member.busy:
        member.work_off(deadline())
        if member.busy:
            _take(member, known)
            yield


def _take(member: Member, known: Incumbent) -> None:
    """Its labeling, its bound and its trace."""
    labels = member.labels() if member.score > known.score else None  # a copy: of millions it takes part of a second
    known.points += [(t, score, bound) for t, score, bound, _ in member.events().tolist()]
    if labels is not None:
        known.labels, known.score = labels, member.score
    known.bound = min(known.bound, max(member.bound, known.score))
