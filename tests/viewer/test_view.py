"""The page of a model and a result: what is in it, its bounds, and in a real browser what clicks and keys do."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import AbsDiff, FactorGraph, Potts, SettingsError, TracePoint
from fginfer.cli import main
from fginfer.errors import UnwritableError
from fginfer.result import Result
from fginfer.viewer import view
from fginfer.viewer.drawing import grid_shape
from fginfer.viewer.near import Near
from fginfer.viewer.watch import Watch


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def trip() -> FactorGraph:
    graph = FactorGraph(
        variables={"go": ["train", "car"], "stay": ["inn", "<b>tent"], "rain": ["no", "yes"], "</script>": 3}
    )
    graph.add_factor(["go"], [1.0, 0.0])
    graph.add_factor(["go", "stay"], [[2.0, -np.inf], [1.0, 1.5]])
    graph.add_factor(["stay", "rain"], [[0.0, 0.5], [1.0, -2.0]])
    graph.add_factor(["go", "stay", "</script>"], np.arange(12.0).reshape(2, 2, 3))
    graph.add_at_most(1, [("go", "car"), ("rain", "yes")])
    return graph


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_margins_are_differences_of_scores(seed: int):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, 5)
    graph = FactorGraph(cards)
    for _ in range(5):
        scope = rng.permutation(5)[: rng.integers(1, 4)]
        graph.add_factor(scope, rng.normal(size=cards[scope]))
    for table in (Potts(0, -1), AbsDiff(0.5, 1.0)):
        graph.add_factor(rng.permutation(5)[:2], table)
    x, near = rng.integers(0, cards), Near(graph)
    for v in range(5):
        others = [graph.score([*x[:v], a, *x[v + 1 :]]) for a in range(cards[v]) if a != x[v]]
        margin = near.margin(v, x.astype(np.int32))
        assert margin == (pytest.approx(graph.score(x) - max(others)) if others else None)
    for f, factor in enumerate(graph.factors()):
        assert near.scope(f) == list(factor.variables)
        assert near.score(f, x) == pytest.approx(graph.factor_scores(x)[f])


def test_weights_and_transposed_tables_are_as_the_graph_has_them():
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_arrays(
        [2, 3, 2], edges=[[0, 1], [2, 1], [1, 0]], tables=[rng.normal(size=(2, 3))], weights=[1, 2.5, -1],
        transposed=[0, 0, 1],
    )  # fmt: skip
    near, x = Near(graph), np.array([1, 2, 0], np.int32)
    np.testing.assert_allclose([near.score(f, x) for f in range(3)], graph.factor_scores(x))


def test_a_page_has_what_there_is_to_say():
    graph = trip()
    page = view(graph, fginfer.solve(graph), title="a <trip>").html
    found = data_of(page)
    assert "a &lt;trip&gt; - fginfer</title>" in page
    assert [v["id"] for v in found["variables"]] == [0, 1, 2, 3]
    assert found["names"] == ["go", "stay", "rain", "</script>"]
    assert found["variables"][1]["words"] == ["inn", "<b>tent"]
    assert found["tables"]["0"]["rows"] == [[2.0, "-inf"], [1.0, 1.5]]
    assert [f["hard"] for f in found["factors"]] == [True, False, False]
    assert found["rules"] == [["at most", [0, 2], 2, 0.0]]
    assert found["conflicts"] == {"factors": [], "count": 0, "labels": []}
    assert dict(found["run"]["facts"])["status"] == "optimal"
    assert found["drawing"]["all"]


def test_conflicts_are_marked():
    found = data_of(view(trip(), [0, 1, 0, 0]).html)
    assert found["conflicts"]["factors"] == [0]
    assert [f["violated"] for f in found["factors"]] == [True, False, False]
    assert found["run"] is None


def test_nothing_is_loaded_from_elsewhere_and_names_are_never_markup():
    page = view(trip(), [0, 0, 0, 0]).html
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"']*", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count("</script>") == 2
    assert "<b>tent" not in page
    assert "innerHTML" not in page


def test_who_did_what_and_the_trace():
    counted = {"presolve.variables_left": 5.0, "bnb.work": 1e6, "bnb.nodes": 12.0, "rounds": 2.0}
    trace = [TracePoint(0.1 * k, float(k), None if k < 3 else 99.0 - k) for k in range(1000)]
    result = Result("auto", "time_limit", np.zeros(2, np.int32), 0.0, 9.0, 3, 1.5, 0.1, 1, 0, trace, statistics=counted)
    run = data_of(view(FactorGraph([2, 2]), result).html)["run"]
    assert run["presolve"] == [["variables left", "5"]]
    assert run["members"] == [["bnb", "1e+06", "", "", "12", "", "", ""]]
    assert run["other"] == [["rounds", "2"]]
    assert len(run["trace"]) <= 400
    assert run["trace"][0] == [0.0, 0.0, None]
    assert run["trace"][-1] == [pytest.approx(99.9), 999.0, -900.0]


def test_a_large_model_has_a_page_that_is_bounded():
    rng = np.random.default_rng(0)
    shape = (250, 400)
    graph = FactorGraph.grid(shape, rng.normal(size=(*shape, 3)), Potts(0, -1))
    page = view(graph, np.zeros(100_000, int)).html
    found = data_of(page)
    assert len(page) < 2.5e6
    assert found["grid"] == [250, 400]
    assert len(found["variables"]) == 2000
    assert len(found["labels"]) == 100_000
    assert len(found["drawing"]["nodes"]) == 240
    assert not found["drawing"]["all"]


@pytest.mark.parametrize(("shape", "grid"), [((4, 5), [4, 5]), ((3, 3), [3, 3]), ((20,), None), ((3, 3, 3), None)])
def test_grids_are_seen(shape: tuple[int, ...], grid: list[int] | None):
    assert grid_shape(Near(FactorGraph.grid(shape, np.zeros((*shape, 2)), Potts(0, -1)))) == grid


def test_other_graphs_are_no_grids():
    ring = [[k, (k + 1) % 12] for k in range(12)]
    assert grid_shape(Near(FactorGraph.from_arrays([2] * 12, edges=ring, tables=[Potts(0, -1)]))) is None


@pytest.mark.parametrize("graph", [FactorGraph([]), FactorGraph([1]), FactorGraph([3, 2, 2])], ids=repr)
def test_small_graphs_have_pages(graph: FactorGraph):
    assert len(data_of(view(graph, fginfer.solve(graph)).html)["variables"]) == graph.n_variables


def test_wrong_input_says_so(tmp_path: Path):
    with pytest.raises(SettingsError, match="view takes a FactorGraph"):
        view([1, 2])
    with pytest.raises(fginfer.ModelError):
        view(trip(), [0, 1])
    with pytest.raises(UnwritableError, match="cannot write the page"):
        view(trip()).save(tmp_path / "nowhere" / "page.html")


def test_notebooks_show_the_page():
    page = fginfer.view(trip())
    frame = page._repr_html_()
    assert html.unescape(re.search(r'srcdoc="(.*?)" title', frame, re.S)[1]) == page.html


def test_the_command_writes_a_page(tmp_path: Path, monkeypatch, capsys):
    graph = FactorGraph.grid((3, 4), np.random.default_rng(0).normal(size=(3, 4, 2)), Potts(0, -1))
    fginfer.write(graph, tmp_path / "a.uai")
    monkeypatch.chdir(tmp_path)
    result = fginfer.solve(graph)
    result.save("a.npz")
    fginfer.write_solution(result.labels, "a.sol")
    assert main(["view", "a.uai"]) == 0
    assert capsys.readouterr().out == "a.html\n"
    assert data_of(Path("a.html").read_text())["labels"] is None
    for source in ("a.npz", "a.sol"):
        assert main(["view", "a.uai", source, "--out", "b.html"]) == 0
        assert data_of(Path("b.html").read_text())["labels"] == result.labels.tolist()
    assert main(["view", "a.uai", "a.sol", "--given", f"0={result.labels[0]}", "--out", "c.html"]) == 0
    assert len(data_of(Path("c.html").read_text())["variables"]) == 11
    assert main(["view", "missing.uai"]) == 3


def test_watch_writes_a_page_that_loads_itself_and_then_stays(tmp_path: Path, monkeypatch, capsys):
    graph = trip()
    watch = Watch(graph, tmp_path / "w.html", "trip")
    result = fginfer.solve(graph)
    watch.show(result)
    assert 'data-reload="1"' in (tmp_path / "w.html").read_text()
    assert not watch.due
    watch.end(result)
    assert 'data-reload="0"' in (tmp_path / "w.html").read_text()
    fginfer.write(FactorGraph.grid((3, 3), np.zeros((3, 3, 2)), Potts(0, -1)), tmp_path / "a.uai")
    assert main(["solve", str(tmp_path / "a.uai"), "--quiet", "--watch", str(tmp_path / "s.html")]) == 0
    assert data_of((tmp_path / "s.html").read_text())["run"]["status"] == "optimal"
    assert main(["solve", str(tmp_path / "a.uai"), "--quiet", "--watch", str(tmp_path / "no" / "s.html")]) == 3
    assert (
        main(["solve", str(tmp_path / "a.uai"), "--quiet", "--k-best", "2", "--watch", str(tmp_path / "s.html")]) == 3
    )


def test_a_page_that_cannot_be_written_does_not_end_the_solve(tmp_path: Path):
    graph = trip()
    folder = tmp_path / "gone"
    watch = Watch(graph, folder / "w.html", "trip")
    watch.show(fginfer.solve(graph))
    assert not watch.due
    watch.end(fginfer.solve(graph))
    assert not folder.exists()


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROBE = """<script>addEventListener("load", () => {
  const out = {}, all = (q) => [...document.querySelectorAll(q)], text = (q) => document.querySelector(q).textContent;
  try {
    out.listed = all("#list button").length;
    const search = document.querySelector("#search");
    search.value = "ra"; search.dispatchEvent(new Event("input"));
    out.found = all("#list button").map((b) => b.textContent);
    search.form.requestSubmit();
    out.first = text("#what h3");
    search.value = ""; search.dispatchEvent(new Event("input"));
    document.querySelector('.node[data-variable="1"]').dispatchEvent(new MouseEvent("click", {bubbles: true}));
    out.detail = text("#what h3");
    out.chosen = text("#what tr.chosen td");
    all("#what .buttons button")[0].click();
    out.heat = all(".heat tbody tr").map((r) => r.textContent);
    out.framed = all(".heat td.at").map((c) => c.textContent);
    const key = (node, k) => node.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
    key(document.querySelector('.node[data-variable="0"]'), "Enter");
    out.key = text("#what h3");
    const items = all("#list button"); items[0].focus();
    key(items[0], "ArrowDown");
    out.moved = document.activeElement === items[1];
    out.conflicts = all("#conflict-list button").map((b) => b.textContent);
    document.querySelector("#conflict-list button").click();
    out.conflict = all(".heat td.at").map((c) => c.className);
    out.hash = location.hash;
    const named = (e) => e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length);
    out.unnamed = all("button, input, select, [role=button], [role=application]").filter((e) => !named(e)).length;
    out.wide = document.documentElement.scrollWidth; out.seen = innerWidth;
  } catch (error) { out.error = String(error); }
  document.title = JSON.stringify(out);
});</script>"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; .ci/run installs it where it can")
@pytest.mark.parametrize("width", [1280, 500])
def test_clicks_and_keys_in_a_browser(tmp_path: Path, width: int):
    page = view(trip(), [0, 1, 0, 0]).html.replace("</body>", PROBE + "</body>")
    (tmp_path / "page.html").write_text(page)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [str(BROWSER), *options, f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}"]
    address = (tmp_path / "page.html").as_uri()
    run = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True)
    out = json.loads(html.unescape(re.search(r"<title>(\{.*?\})</title>", run.stdout)[1]))
    assert "error" not in out, out
    assert out["listed"] == 4
    assert [line.split(" ")[0] for line in out["found"]] == ["rain"]
    assert out["first"] == "rain = no"
    assert out["detail"] == "stay = <b>tent, in a conflict"
    assert out["chosen"] == "<b>tent"
    assert out["heat"] == ["train2\u2715", "car11.5"]
    assert out["framed"] == ["\u2715"]
    assert out["key"] == "go = train, in a conflict"
    assert out["moved"]
    assert len(out["conflicts"]) == 1
    assert out["conflict"] == ["never at"]
    assert out["hash"] == "#v0"
    assert out["unnamed"] == 0
    assert out["wide"] <= out["seen"]
