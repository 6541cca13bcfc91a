"""What people try in their first hour: files, evidence, a log, saved results, settings of the wrong type."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError, Potts, Result, SettingsError, Solver, solve


@pytest.fixture
def graph() -> FactorGraph:
    rng = np.random.default_rng(3)
    return FactorGraph.grid((3, 4), rng.normal(size=(3, 4, 3)), Potts(0, -0.7))


def test_a_file_and_an_evidence_file(graph: FactorGraph, tmp_path) -> None:
    fginfer.write(graph, tmp_path / "m.uai")
    (tmp_path / "m.evid").write_text("2 0 2 5 1\n")
    by_dict = solve(graph, evidence={0: 2, 5: 1})
    by_file = solve(str(tmp_path / "m.uai"), evidence=tmp_path / "m.evid")
    assert by_dict.labels is not None
    assert by_dict.labels[[0, 5]].tolist() == [2, 1]
    assert graph.score(by_dict.labels) == pytest.approx(by_dict.score)
    assert np.array_equal(by_file.labels, by_dict.labels)
    best = max(graph.score(x) for x in _with(graph, {0: 2, 5: 1}))
    assert by_dict.score == pytest.approx(best)
    again = solve(graph, "icm", evidence={0: 2, 5: 1}, warm_start=by_dict, max_iterations=0)
    assert again.score == pytest.approx(best)


def _with(graph: FactorGraph, evidence: dict[int, int]):
    given = graph.condition(evidence)
    for _ in range(300):
        yield given.expand(np.random.default_rng(_).integers(0, 3, len(given.free)))
    yield given.expand(solve(given.graph, "bnb").labels)


def test_verbose_prints_and_leaves_logging_alone(graph: FactorGraph, capsys) -> None:
    solve(graph, verbose=True)
    assert "scores are maximised" in capsys.readouterr().err
    solve(graph)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("time_limit", ["5", -1, True, float("nan"), [1]])
def test_limits_of_the_wrong_kind(graph: FactorGraph, time_limit) -> None:
    with pytest.raises(SettingsError, match="time_limit must be a number of seconds"):
        solve(graph, time_limit=time_limit)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"gap": "x"}, "gap must be a number, not 'x'"),
        ({"gap": float("nan")}, "gap must be a number, not nan"),
        ({"seed": "1"}, "seed must be a whole number, not '1'"),
        ({"threads": 1.5}, "threads must be a whole number, not 1.5"),
        ({"max_iterations": "5"}, "max_iterations must be a whole number"),
        ({"cutoff": "5"}, "cutoff must be a number, not '5'"),
        ({"memory": "1GB"}, "memory must be a number of bytes, 0 or more, not '1GB'"),
    ],
)
def test_settings_of_the_wrong_kind(graph: FactorGraph, setting, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        solve(graph, **setting)


@pytest.mark.slow
def test_options_are_typed(tmp_path) -> None:
    """What a user's mypy --strict says: right options pass, wrong names and values are found."""
    api = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(
        "from fginfer import FactorGraph, Result, solve\n"
        "r: Result = solve(FactorGraph([2, 2]), 'gdmm', rho=0.5, access='sorted', time_limit=1)\n"
        "if r.status == 'optimal': print(r.score)\n"
        "solve('m.uai', rho='much')\n"
        "solve('m.uai', access='sideways')\n"
        "solve('m.uai', roh=0.5)\n"
        "if r.status == 'optimum': print(r.score)\n"
    )
    flags = ["--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", str(tmp_path / "cache")]
    out = api.run([*flags, str(tmp_path / "user.py")])[0]
    lines = [line for line in out.splitlines() if "user.py" in line and " error: " in line]
    assert [int(line.split(":")[1]) for line in lines] == [4, 5, 6, 7], out


@pytest.mark.slow
def test_a_checkout_has_no_errors_for_its_users(tmp_path, monkeypatch) -> None:
    """Found by its sources (an editable install), without our settings and without stubs of what we import."""
    api = pytest.importorskip("mypy.api")
    source = Path(fginfer.__file__).parent.parent
    if not (source / "pyproject.toml").exists():
        source = Path(__file__).parents[2]
    (tmp_path / "user.py").write_text(
        "from fginfer import FactorGraph, Result, solve\n"
        "from fginfer.options import Options\n\n"
        "options: Options = {'rho': 0.5}\n"
        "r: Result = solve(FactorGraph([2, 2]), 'gdmm', **options)\n"
    )
    monkeypatch.setenv("MYPYPATH", str(source))
    flags = ["--strict", "--config-file=", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    monkeypatch.chdir(tmp_path)
    assert api.run([*flags, "user.py"])[0] == ""


def test_a_solve_waits_for_no_large_import() -> None:
    code = (
        "import fginfer, sys; fginfer.solve(fginfer.FactorGraph([2, 2])); "
        "large = {'scipy', 'networkx', 'sklearn', 'matplotlib', 'rich'}; print(large & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_packages_are_there_when_asked_for() -> None:
    code = "import fginfer, sys; print('matplotlib' in sys.modules, fginfer.plots.plot_labels.__name__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "plot_labels"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fginfer.nothing  # noqa: B018


def test_what_is_not_a_graph() -> None:
    with pytest.raises(SettingsError, match="takes a FactorGraph or the name of a model file, not ndarray"):
        solve(np.zeros((2, 2)))
    with pytest.raises(FileNotFoundError, match="no such file"):
        solve("missing.uai")


@pytest.mark.parametrize("method", ["gdmm", "auto", "icm"])
def test_results_are_saved_and_loaded(graph: FactorGraph, tmp_path, method: str) -> None:
    result = solve(graph, method)
    result.save(tmp_path / "r.npz")
    back = Result.load(tmp_path / "r.npz")
    assert json.loads(json.dumps(back.to_dict(), allow_nan=False)) == json.loads(json.dumps(result.to_dict()))
    assert np.array_equal(back.labels, result.labels)
    assert (back.marginals is None) == (result.marginals is None)
    for a, b in zip(back.marginals or (), result.marginals or (), strict=True):
        assert np.array_equal(a, b)
    assert (back.messages is None and result.messages is None) or np.array_equal(back.messages, result.messages)
    assert "status" in back._repr_html_()


def test_notebooks_show_tables_that_can_be_read() -> None:
    chain = FactorGraph([2] * 30)
    for i in range(30):
        chain.add_factor([i], [0.0, 1 / 3])
    html = solve(chain)._repr_html_()
    assert "<td>10</td>" in html  # the score, to twelve digits
    assert f"<td>{'1 ' * 20}... (30 in all)</td>" in html
    chain.add_factor([0], [-np.inf, -np.inf])
    assert "<td>score</td><td>not known</td>" in solve(chain)._repr_html_()
    assert "<td>variables</td><td>30</td>" in chain._repr_html_()
    assert "<td>table entries</td>" in chain.describe()._repr_html_()


def test_infeasible_results_come_back(tmp_path) -> None:
    hard = FactorGraph([2])
    hard.add_factor([0], [-np.inf, -np.inf])
    result = solve(hard)
    result.save(tmp_path / "r.npz")
    assert (Result.load(tmp_path / "r.npz").status, Result.load(tmp_path / "r.npz").bound) == ("infeasible", -np.inf)
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(FormatError, match="not a saved result"):
        Result.load(tmp_path / "bad.npz")
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none.npz")


@pytest.mark.parametrize("method", ["trws", "auto"])
def test_solvers_pickle_with_what_they_have_found(graph: FactorGraph, method: str) -> None:
    solver = Solver(graph, method)
    solver.run(iterations=3)
    copy = pickle.loads(pickle.dumps(solver))
    assert copy.result().score >= solver.result().score
    assert copy.run() != "running"
    assert copy.result().score == pytest.approx(solve(graph, "bnb").score)
    assert repr(solver).startswith(f"<Solver: {method} on <FactorGraph: 12 variables")


def test_the_package_shows_its_public_names() -> None:
    assert set(dir(fginfer)) == {*fginfer.__all__, "__version__"}
    for name in fginfer.__all__:
        assert hasattr(fginfer, name)


def test_a_result_prints_one_line(graph: FactorGraph) -> None:
    result = solve(graph, evidence={0: 1})
    text = repr(result)
    assert text.startswith(f"<Result: auto, optimal, score {result.score!r}, bound {result.bound!r}, gap ")
    assert f"labels [1 {result.labels[1]} " in text
    assert "\n" not in text
    big = solve(FactorGraph.from_arrays(np.full(5000, 2), np.random.default_rng(0).normal(size=(5000, 2))))
    assert len(repr(big)) < 200
    none = FactorGraph([2])
    none.add_factor([0], [-np.inf, -np.inf])
    assert repr(solve(none)).startswith("<Result: auto, infeasible, bound -inf, ")
