"""How auto shares out its work: who helps a proof that does not get on, and who is left with little."""

import numpy as np
import pytest

import fginfer
import fginfer.portfolio.team as team
from fginfer import FactorGraph
from fginfer.engine import Settings
from fginfer.portfolio.ledger import Account, terms_of
from fginfer.portfolio.members.proof import Proof
from fginfer.portfolio.members.relaxation import Greedy, Slabs
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.threads import Threads
from fginfer.portfolio.worker import Worker


def matching(n: int, k: int, seed: int) -> FactorGraph:
    """Points that each take one of their k nearest detections, none twice, and would like to move as their neighbours
    do: many labels exclude each other, and the relaxation is loose."""
    rng = np.random.default_rng(seed)
    points, found = rng.random((n, 2)), rng.random((2 * n, 2))
    distance = ((points[:, None] - found[None]) ** 2).sum(2)
    nearest = np.argsort(distance, 1)[:, :k]
    graph = FactorGraph([k] * n)
    for i in range(n):
        graph.add_factor([i], -20 * distance[i, nearest[i]])
        for j in range(i + 1, n):
            moves = (found[nearest[i]] - points[i])[:, None] - (found[nearest[j]] - points[j])[None]
            table = -np.minimum(50 * (moves**2).sum(2), 5.0) if (i + j) % 3 == 0 else np.zeros((k, k))
            table[nearest[i][:, None] == nearest[j][None]] = -np.inf
            graph.add_factor([i, j], table)
    return graph


def run_rounds(graph: FactorGraph, rounds: int, messages: np.ndarray | None = None, **rules: float) -> team.Team:
    settings = terms_of(Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0), Rules.changed(rules))
    part = team.Team(graph.snapshot(), None, settings, 1 << 28)
    part.messages = messages
    part.prepare()
    threads = Threads(1)
    threads.at_once = True
    for _ in range(rounds):
        for _ in part.begin_round(threads):
            pass
        part.work_off(np.inf)
        part.end_round()
    assert part.running
    return part


@pytest.fixture(scope="module")
def loose() -> FactorGraph:
    return matching(60, 12, seed=1)


def test_a_proof_by_cliques_that_does_not_get_on_is_helped_and_takes_less(loose):
    part = run_rounds(loose, 5, little_patience=0.0, patience=0.0)
    assert part.has("cliques")
    assert part.has("gdmm", "slabs")
    assert part.of("cliques")[0].share < 1


def test_where_slabs_cannot_join_gdmm_does(loose, monkeypatch):
    def refuse(*_: object) -> None:
        raise fginfer.SolverError("not this model")

    monkeypatch.setattr(Slabs, "__init__", refuse)
    assert run_rounds(loose, 5, little_patience=0.0, patience=0.0, far_proof=0.0).has("gdmm")


def test_a_relaxation_is_judged_by_its_own_bound(loose):
    """Told the best one it would seem idle for as long as it takes to get there."""
    part = run_rounds(loose, 5, little_patience=0.0, patience=0.0, far_proof=np.inf)
    part.bound = part.score
    part.end_round()
    greedy = part.of("gdmm")[0]
    told = part.of("search")[0]
    assert told.bound < greedy.bound


def test_gdmm_goes_on_from_the_messages_of_sweeps():
    rng = np.random.default_rng(3)
    edges = [(i, j) for i in range(40) for j in range(i)]
    graph = FactorGraph.from_arrays([3] * 40, edges=edges, tables=rng.normal(size=(len(edges), 3, 3)))
    swept = fginfer.solve(graph, "trws", max_iterations=100, gap=0.0)
    part = run_rounds(graph, 2, swept.messages, near_patience=0.0, far_proof=np.inf)
    greedy = part.of("gdmm")[0]
    assert greedy.bound <= swept.bound + 1e-9 * abs(swept.bound)


@pytest.mark.parametrize(("overtaken", "share"), [(-1.0, Rules.small_share), (1.0, 1.0)])
def test_a_proof_that_was_overtaken_takes_little(overtaken, share):
    """... and who helps may come long before the proof is given up: it needs PATIENCE, help LITTLE_PATIENCE."""
    rng = np.random.default_rng(3)
    edges = [(i, j) for i in range(40) for j in range(i)]
    graph = FactorGraph.from_arrays([3] * 40, edges=edges, tables=rng.normal(size=(len(edges), 3, 3)))
    part = run_rounds(graph, 3, little_patience=0.0, far_proof=np.inf, overtaken=overtaken)
    assert part.running
    assert part.has("gdmm")
    assert part.of("bnb")[0].share == share


class Found(Worker):
    """A member that has found something."""

    name, score, bound, busy = "found", 0.0, 5.0, False

    def __init__(self, score: float, status: str) -> None:
        self.score, self.status, self.account = score, status, Account("found")

    @classmethod
    def make(cls, team: team.Team) -> None:
        return None

    def owe(self, work: float) -> None:
        raise AssertionError

    work_off = owe

    def labels(self) -> list[float]:
        return [self.score]


def test_what_others_found_while_a_part_was_ended_does_not_count(loose):
    """With one thread they would not have begun: a near tie could be won by them with several."""
    part = team.Team(loose.snapshot(), None, Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0), 0)
    part.members = [Found(1.0, "running"), Found(2.0, "optimal"), Found(3.0, "running")]
    part.end_round()
    assert part.best() == ([2.0], 2.0, 5.0)
    assert part.status == "optimal"


@pytest.mark.parametrize("kind", [Greedy, Proof])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1e300])
def test_messages_that_a_member_cannot_take_are_no_start(kind, value):
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_arrays([3] * 3, edges=[(0, 1), (1, 2)], tables=rng.normal(size=(2, 3, 3)))
    member = kind(graph.snapshot(), Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0))
    member.start_from(np.full(12, value))
    member.owe(1e6)
    member.work_off(np.inf)
    assert member.status == "optimal"
    assert member.score == pytest.approx(fginfer.solve(graph, "bnb").score)
