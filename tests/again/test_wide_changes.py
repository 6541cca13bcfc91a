"""Changes of very many scores, which sweeps follow, between others that a keeper follows: beside fresh solves."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, Solver, solve
from fginfer.errors import ModelError

RULES = {"tiny_states": 0.0, "again_slice": 500.0}  # small models would be solved before any sweep, or without a pause
SHAPE, LABELS = (8, 9), 3


def image(rng: np.random.Generator) -> FactorGraph:
    truth = np.kron(rng.integers(LABELS, size=(2, 3)), np.ones((4, 3), int))[..., None]
    unary = (truth == np.arange(LABELS)) + 0.5 * rng.normal(size=(*SHAPE, LABELS))
    return FactorGraph.grid(SHAPE, unary, Potts(0, -0.6))


class Changes:
    """Random changes of a graph, wide ones most of all."""

    def __init__(self, graph: FactorGraph, rng: np.random.Generator) -> None:
        self.graph, self.rng, self.handles, self.pushed = graph, rng, [], []
        self.base = graph.table_arrays().unary.reshape(-1, LABELS).copy()

    def one(self) -> None:
        rng, graph, n = self.rng, self.graph, self.graph.n_variables
        what = rng.integers(10)
        scores = self.base + 0.1 * rng.normal(size=self.base.shape)
        if what < 3:
            graph.set_unaries(scores)
        elif what == 3:
            scores[rng.random(scores.shape) < 0.1] = -inf
            scores[:, 0] = self.base[:, 0]
            graph.set_unaries(scores)
        elif what == 4:
            which = rng.choice(n, size=n // 4, replace=False)
            graph.set_unaries(scores[which], which)
        elif what == 5:
            graph.set_unary(int(rng.integers(n)), rng.normal(size=LABELS))
        elif what == 6:
            scores[int(rng.integers(n))] = np.nan
            with pytest.raises(ModelError):
                graph.set_unaries(scores)
        elif what == 7 and self.handles and rng.random() < 0.5:
            graph.remove_factor(self.handles.pop())
        elif what == 7:
            pair = rng.choice(n, size=2, replace=False)
            self.handles.append(graph.add_factor(pair, rng.normal(size=(LABELS, LABELS))))
        elif what == 8 and not self.pushed:
            graph.push()
            self.pushed = [list(self.handles)]
        elif what == 8:
            graph.pop()
            self.handles = self.pushed.pop()
        elif not self.pushed:
            graph.cutoff = -inf if rng.random() < 0.7 else graph.score(np.zeros(n, int))


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_wide_and_narrow_changes_say_what_a_fresh_solve_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = image(rng)
    changes = Changes(graph, rng)
    with (
        Solver(graph, rules=RULES) as whole,
        Solver(graph, rules=RULES) as sliced,
        Solver(graph, rules=RULES, threads=2) as threaded,
    ):
        for step in range(6):
            for _ in range(0 if step == 0 else int(rng.integers(1, 3))):
                changes.one()
            for one in (whole, sliced, threaded):
                one.update()
            while sliced.run(1e-4) == "running":
                sliced.progress()
            whole.run()
            threaded.run()
            found, fresh = whole.result(), solve(graph, rules=RULES)
            for other in (sliced.result(), threaded.result()):
                assert (other.status, other.score, other.bound) == (found.status, found.score, found.bound)
                assert (other.labels is None) == (found.labels is None)
                assert found.labels is None or np.array_equal(other.labels, found.labels)
            assert found.status == fresh.status
            assert found.score == pytest.approx(fresh.score, rel=1e-9)
            if found.labels is not None:
                assert found.score == graph.score(found.labels)
                assert found.bound >= fresh.score


def test_sweeps_follow_frames_and_a_keeper_follows_single_pixels() -> None:
    rng = np.random.default_rng(3)
    graph = image(rng)
    base = graph.table_arrays().unary.reshape(-1, LABELS).copy()
    told = []
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for wide in (True, True, False, False, True, True, True):
            if wide:
                graph.set_unaries(base + 0.05 * rng.normal(size=base.shape))
            else:
                graph.set_unary(int(rng.integers(len(base))), rng.normal(size=LABELS))
            solver.update()
            solver.run()
            found = solver.result()
            assert (found.status, found.proved_by) == ("optimal", "again")
            assert found.score == pytest.approx(solve(graph, rules=RULES).score, rel=1e-9)
            told.append("again.sweeps" in found.statistics)
    assert told == [True, True, False, False, False, True, True]  # one frame alone is not worth another beginning


@pytest.mark.parametrize("threads", [1, 2])
def test_labels_that_were_forbidden_may_come_back(threads: int) -> None:
    """Messages that said so are not believed any more."""
    rng = np.random.default_rng(4)
    graph = FactorGraph.grid((2, 4), np.zeros((2, 4, 2)), rng.normal(size=(2, 2)))
    labelings = list(product(range(2), repeat=8))
    with Solver(graph, "trws", threads=threads) as solver:
        for share in (0.4, 0.0, 0.5, 0.2, 0.0):
            scores = rng.normal(size=(8, 2))
            scores[rng.random(8) < share, 0] = -inf
            graph.set_unaries(scores)
            solver.update()
            solver.run(iterations=50)
            found, best = solver.result(), max(graph.score(x) for x in labelings)
            assert found.bound >= best
            assert found.score == graph.score(found.labels)
            assert found.status != "optimal" or found.score == pytest.approx(best)


def test_what_sweeps_cannot_close_goes_to_the_portfolio() -> None:
    """Neighbours that want to differ, and unaries that say nothing."""
    rng = np.random.default_rng(5)
    graph = image(rng)
    with Solver(graph, rules=RULES | {"again_iterations": 2}) as solver:
        solver.run()
        graph.set_unaries(rng.normal(size=(graph.n_variables, LABELS)))
        solver.update()
        solver.run()
        found = solver.result()
        assert found.status == "optimal"
        assert found.score == pytest.approx(solve(graph, rules=RULES).score, rel=1e-9)
