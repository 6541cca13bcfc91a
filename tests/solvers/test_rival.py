"""ADMM beside the sweeps of auto, where factors have more than two variables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import fginfer.portfolio.opening as rivals
import fginfer.portfolio.stages as stages
from fginfer import FactorGraph, Solver, solve
from fginfer.engine import Settings
from fginfer.portfolio.known import Incumbent
from fginfer.portfolio.members.relaxation import Alternating, Sweeps
from fginfer.portfolio.opening import sweep_while_near


def tracks(frames: int, cells: int, seed: int) -> FactorGraph:
    """Detections, and moves between frames: what comes into one and goes out of it fits, in factors of up to nine."""
    rng = np.random.default_rng(seed)
    places = rng.random((frames, cells, 2))
    scores = list(rng.normal(1.0, 1.0, frames * cells))
    ends: dict[tuple[int, bool], list[int]] = {}
    for t in range(frames - 1):
        far = ((places[t][:, None] - places[t + 1][None]) ** 2).sum(2)
        for i, j in product(range(cells), range(4)):
            to = int(np.argsort(far[i])[j])
            ends.setdefault((t * cells + i, True), []).append(len(scores))
            ends.setdefault(((t + 1) * cells + to, False), []).append(len(scores))
            scores.append(1.2 - 20 * far[i, to])
    graph = FactorGraph([2] * len(scores))
    for v, score in enumerate(scores):
        graph.add_factor([v], [0.0, score])
    for (detection, divides), moves in ends.items():
        moves = moves[:8]
        table = np.full((2,) * (len(moves) + 1), -np.inf)
        for x in product((0, 1), repeat=len(moves)):
            if sum(x) <= 1 or (sum(x) == 2 and divides):
                table[(1, *x)] = (-1.5, 0.0, -3.0)[sum(x)]
        table[(0,) * (len(moves) + 1)] = 0.0
        graph.add_factor([detection, *moves], table)
    return graph


def watch(monkeypatch: pytest.MonkeyPatch) -> list[rivals.Rival | None]:
    made: list[rivals.Rival | None] = []
    make = rivals.make_rival
    monkeypatch.setattr(stages, "make_rival", lambda *a: (made.append(make(*a)), made[-1])[1])
    return made


@pytest.fixture(scope="module")
def stalls() -> FactorGraph:
    """Sweeps leave a gap of a percent."""
    return tracks(20, 20, 0)


def test_where_sweeps_stall_admm_goes_on_to_the_end(stalls: FactorGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    made = watch(monkeypatch)
    result = solve(stalls)
    (rival,) = made
    assert rival is not None
    assert rival.leads
    assert result.iterations == 0  # no round of the portfolio
    assert result.score == pytest.approx(solve(stalls, "ad3").score, rel=1e-6)


def test_threads_and_slices_change_nothing(stalls: FactorGraph) -> None:
    def told(threads: int, slices: float | None) -> tuple[object, ...]:
        with Solver(stalls, threads=threads) as solver:
            while solver.run(slices) == "running":
                pass
            result = solver.result()
        assert result.labels is not None
        return result.status, result.score, result.bound, result.labels.tolist()

    assert told(1, None) == told(2, None) == told(1, 0.003)


def test_pairs_have_no_rival() -> None:
    graph = FactorGraph.grid((4, 4), np.zeros((4, 4, 2)), np.eye(2))
    assert rivals.make_rival(graph.model, Settings("auto"), np.zeros(24 * 4)) is None


def test_a_rival_leaves_when_it_has_not_closed_the_gap_for_some_turns() -> None:
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1, 2], np.arange(8.0).reshape(2, 2, 2))
    rival = rivals.make_rival(graph.model, Settings("auto", start_time=0.0), np.zeros(6))
    assert rival is not None
    assert isinstance(rival.member, Alternating)
    assert not rival.takes_another_turn()  # it does not lead
    rival.leads = True
    info = rival.member.engine.info
    info.score = 0.0
    taken = []
    for bound in (8.0, 6.0, 6.0, 6.0, 5.0, 4.0, 4.5, 4.3, 4.2):
        info.bound = bound
        taken.append(rival.takes_another_turn())
    assert taken == [True, True, True, True, True, True, False, False, False]
    rival.member.status = "optimal"
    assert not rival.takes_another_turn()


def test_of_two_labelings_alike_the_sweeps_are_first(stalls: FactorGraph) -> None:
    """Where a slice ends in the middle of the sweeps, theirs has been taken by then."""
    settings = Settings("auto", start_time=0.0, gap=0.0)
    sweeps = Sweeps(stalls.model, settings)
    known = Incumbent(stalls.model, 0.0)
    theirs: list[list[int]] = []

    class Twin(Alternating):
        """Has the score of the sweeps, and other labels."""

        score = property(lambda self: sweeps.score)  # type: ignore[assignment]
        busy = property(lambda self: False)  # type: ignore[assignment]

        def labels(self) -> NDArray[np.int32] | None:
            labels = sweeps.labels()
            assert labels is not None
            theirs.append(labels.tolist())
            return 1 - labels

    def make_rival() -> rivals.Rival:
        return rivals.Rival(Twin(stalls.model, settings))

    for _ in sweep_while_near(sweeps, known, lambda: np.inf, False, None, make_rival):
        pass
    assert sweeps.engine.steps > sweeps.rules.rival_sweeps
    labels = sweeps.labels()
    assert labels is not None
    assert known.labels is not None
    assert known.labels.tolist() == labels.tolist()
    assert not theirs  # nobody asked for labels that are no better
