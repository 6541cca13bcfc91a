"""What auto says about its own work: who found what, who proved it, and how much each one worked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, Result, Solver
from fginfer.engine import NativeEngine
from fginfer.log import RunLog, end_line, heading, row
from fginfer.portfolio.team import AFTER_A_ROUND, AT_FIRST, BEFORE_A_ROUND, HELPERS
from fginfer.result import Progress

PROVERS = {"bnb", "edac", "dolls", "cliques", "elimination", "trws", "cycles", "presolve", "gdmm", "ad3", "slabs"}
PROVERS |= {"sdp", "assignment"}


def grid(n: int, seed: int = 0, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return FactorGraph.grid((n, n), rng.normal(size=(n, n, labels)), rng.normal(size=(labels, labels)))


def counted(result: Result) -> dict[str, float]:
    return {name: n for name, n in result.statistics.items() if not name.endswith("seconds")}


@pytest.mark.parametrize("n", [3, 12, 20])
def test_the_accounts_are_what_the_core_did(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: dict[str, float] = {}
    run = NativeEngine.run

    def watched(self: NativeEngine, seconds: float, iterations: int) -> str:
        before = int(self.info.iterations)
        try:
            return run(self, seconds, iterations)
        finally:
            name = self.settings.method
            steps[name] = steps.get(name, 0) + int(self.info.iterations) - before

    monkeypatch.setattr(NativeEngine, "run", watched)
    result = fginfer.solve(grid(n, labels=4), "auto", max_iterations=4)
    said = {name: result.statistics.get(f"{name}.iterations", 0.0) for name in steps if name != "bnb"}
    assert said == {name: k for name, k in steps.items() if name != "bnb"}
    proofs = sum(result.statistics.get(f"{name}.iterations", 0.0) for name in ("bnb", "cliques"))
    assert proofs == steps.get("bnb", 0)


@pytest.mark.parametrize("n", [3, 15])
def test_a_proof_has_an_author(n: int) -> None:
    result = fginfer.solve(grid(n))
    assert result.status == "optimal"
    assert set((result.proved_by or "").split(", ")) <= PROVERS
    assert result.found_by
    stopped = fginfer.solve(grid(40, labels=6), max_iterations=1, gap=0.0)
    assert (stopped.proved_by is None) == (stopped.status == "iteration_limit")


def test_what_was_given_is_said_to_be_given() -> None:
    best = fginfer.solve(grid(4))
    for method in ("auto", "icm", "bnb"):
        assert fginfer.solve(grid(4), method, warm_start=best.labels).found_by == "offer"


def test_a_forest_is_proved_by_one_who_worked_or_by_presolve() -> None:
    result = fginfer.solve(
        FactorGraph.from_arrays([2] * 5, np.eye(5, 2), [[0, 1], [1, 2], [3, 4]], tables=[np.eye(2)] * 3)
    )
    assert result.status == "optimal"
    for name in (result.proved_by or "").split(", "):
        assert name == "presolve" or result.statistics[f"{name}.work"] > 0


def test_no_labeling_is_found_by_nobody() -> None:
    hard = FactorGraph([2, 2])
    hard.add_factor([0, 1], np.full((2, 2), -np.inf))
    for method in ("auto", "bnb"):
        result = fginfer.solve(hard, method)
        assert (result.status, result.found_by) == ("infeasible", None)
        assert result.proved_by


def test_counters_depend_neither_on_slices_nor_on_threads() -> None:
    graph = grid(22, labels=4)
    whole = fginfer.solve(graph, max_iterations=3, gap=0.0)
    with Solver(graph, "auto", max_iterations=3, gap=0.0) as solver:
        while solver.run(seconds=0.001) == "running":
            pass
        cut = solver.result()
    assert counted(cut) == counted(whole)
    assert (cut.found_by, cut.proved_by) == (whole.found_by, whole.proved_by)


def test_work_beside_the_one_who_decides_does_not_count() -> None:
    """With two threads others work in the last round, too; with one they would not have begun."""
    rng, side = np.random.default_rng(0), 24
    graph = FactorGraph([2] * side**2)
    for i in range(side**2):
        for j in (i // side * side + (i + 1) % side, (i + side) % side**2):
            graph.add_factor([i, j], rng.choice([-1.0, 1.0]) * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    rules = {"quick_work": 1e4, "quick_passes": 0, "quick_more": 0, "tiny_states": 0, "few_factors": -1}
    one, two = (fginfer.solve(graph, threads=threads, rules=rules) for threads in (1, 2))
    assert one.status == "optimal"
    assert one.iterations > 0
    assert counted(one) == counted(two)


@pytest.mark.parametrize("method", ["trws", "bnb", "gdmm", "icm"])
def test_single_methods_have_their_names(method: str) -> None:
    result = fginfer.solve(grid(3), method, max_iterations=200)
    assert result.found_by in ((method,) if method != "gdmm" else ("sweep", "rounding", "local search", "search"))
    assert result.proved_by == (method if result.status in ("optimal", "gap_reached") else None)


def test_a_saved_result_keeps_them(tmp_path: Path) -> None:
    result = fginfer.solve(grid(12))
    result.save(tmp_path / "r.npz")
    again = Result.load(tmp_path / "r.npz")
    assert (again.found_by, again.proved_by, again.statistics) == (result.found_by, result.proved_by, result.statistics)
    assert result.to_dict()["proved_by"] == result.proved_by


def test_the_last_line_says_who_did_what() -> None:
    told = {"rounds": 2.0, "parts": 1.0, "bnb.work": 690.0, "edac.work": 310.0, "presolve.used": 1.0,
            "presolve.variables": 144.0, "presolve.variables_left": 61.0, "presolve.work": 5.0}  # fmt: skip
    result = Result("auto", "optimal", None, 1.0, 1.0, 2, 0.5, 0.0, 1, 0, statistics=told, proved_by="bnb")
    line = "optimal · proved by bnb · bnb 69 %, edac 31 % of the work · presolve left 61 of 144 variables"
    assert end_line(result) == f"{line} · 2 rounds · 0.50 s"
    assert "iteration" not in end_line(fginfer.solve(grid(3)))


@pytest.mark.parametrize(("method", "counts"), [("auto", "round"), ("trws", "iter")])
def test_rows_say_what_they_count(method: str, counts: str, caplog: pytest.LogCaptureFixture) -> None:
    """Rounds, under auto: its members have iterations of their own."""
    caplog.set_level("INFO", "fginfer")
    fginfer.solve(grid(3), method)
    assert [line.split()[0] for line in caplog.messages if "score " in line and "gap" in line] == [counts]


def test_the_manual_names_every_member() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "start" / "results.md").read_text()
    rows = "".join(line for line in page.split("\n") if "| members " in line)
    names = {kind.name for kind in (*AT_FIRST, *BEFORE_A_ROUND, *AFTER_A_ROUND, *HELPERS)}
    assert {name for name in names if f"`{name}`" not in rows} == set()


def test_rows_name_who_found_an_improvement_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fginfer")
    log = RunLog()
    for k, (score, who) in enumerate([(1.0, "icm"), (1.0, "icm"), (2.0, "search")]):
        log(Progress(100.0 * k, k, score, 5.0, found_by=who))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].endswith("found by")
    assert [line.split()[-1] for line in lines[1:]] == ["icm", "100.00s", "search"]
    assert "found by" not in heading(log._columns._replace(found_by=False))
    assert row(Progress(0.0, 1, 1.0, 2.0)).endswith("s")
