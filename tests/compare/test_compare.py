"""fginfer compare: what is run, how it is re-scored, what is missing, and the page in a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from fginfer import FactorGraph, solve, write
from fginfer.cli import main
from fginfer.compare import Comparison, Run, compare
from fginfer.compare.lp import local_polytope
from fginfer.compare.page import page, performance_profile
from fginfer.compare.peers import PEERS, Peer


def test_a_file_that_is_refused_has_its_reason_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(FactorGraph([2, 2]), tmp_path / "a.uai")
    assert main(["compare", str(tmp_path / "a.uai"), "--methods", "icm", "--max-memory", "10"]) == 4
    assert f"  {tmp_path / 'a.uai'}: the model would take" in capsys.readouterr().out


def model(seed: int, side: int = 4, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([labels] * side**2)
    for i in range(side**2):
        graph.add_factor([i], rng.normal(size=labels))
        for j in ([i + 1] if (i + 1) % side else []) + ([i + side] if i + side < side**2 else []):
            graph.add_factor([i, j], rng.normal(size=(labels, labels)))
    return graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, one with evidence, and the report over them."""
    place = tmp_path_factory.mktemp("compare")
    write(model(0), place / "a.uai")
    write(model(1), place / "b.uai.gz")
    (place / "b.uai.evid").write_text("1 3 2\n")
    files = [str(place / "a.uai"), str(place / "b.uai.gz")]
    code = main(["compare", *files, "--methods", "auto,trws,highs", "--time-limit", "5", "-o", str(place / "out")])
    assert code == 0
    return place


@pytest.mark.slow
def test_files_are_rescored_and_evidence_counts(folder: Path) -> None:
    data = json.loads((folder / "out" / "results.json").read_text())
    best = {(Path(r["file"]).name, r["method"]): r for r in data["runs"]}
    assert len(best) == 6
    plain = solve(model(0), gap=0.0)
    assert best["a.uai", "auto"]["score"] == pytest.approx(plain.score)
    given = model(1).condition({3: 2})
    fixed = solve(given.graph, gap=0.0)
    assert fixed.labels is not None
    assert best["b.uai.gz", "auto"]["score"] == pytest.approx(model(1).score(given.expand(fixed.labels)))
    for run in data["runs"]:
        top = best[Path(run["file"]).name, "auto"]["score"]
        assert run["score"] <= top + 1e-9
        assert run["bound"] >= top - 1e-6
        assert run["peak_mb"] > 1
    with open(folder / "out" / "results.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(r["method"], float(r["score"])) for r in rows] == [(r["method"], r["score"]) for r in data["runs"]]


def test_gaps_are_in_the_unit_of_the_model(tmp_path: Path) -> None:
    """Frustrated triangle, best score 0: relative to |score| any gap would be infinite."""
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([], -1.0)
    for a, b, same in ((0, 1, 1.0), (1, 2, 1.0), (0, 2, -1.0)):
        graph.add_factor([a, b], [[same, -same], [-same, same]])
    write(graph, tmp_path / "triangle.npz")
    (run,) = compare([tmp_path / "triangle.npz"], ["trws"], time_limit=1.0).runs
    assert run.unit == 2.0
    assert run.score == 0.0
    assert run.bound is not None
    assert run.gap == run.bound / 2


def test_lp_bounds_the_optimum_and_is_tight_on_trees() -> None:
    chain = FactorGraph([3, 2, 4])
    rng = np.random.default_rng(3)
    chain.add_factor([0, 1], rng.normal(size=(3, 2)), weight=2.0)
    chain.add_factor([2, 1], rng.normal(size=(2, 4)), transposed=True)
    problem = local_polytope(chain, 1000)
    assert problem is not None
    answer = problem.solve(10.0)
    assert not isinstance(answer, str)
    assert answer[1] == pytest.approx(solve(chain, gap=0.0).score)
    assert chain.score(answer[0]) == pytest.approx(answer[1])
    assert local_polytope(chain, 10) is None


def test_missing_peers_are_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PEERS, "toulbar2", Peer("toulbar2", lambda: "toulbar2: not here", PEERS["highs"].run))
    out = folder / "missing"
    assert (
        main(["compare", str(folder / "a.uai"), "--methods", "icm,toulbar2", "--time-limit", "1", "--out", str(out)])
        == 0
    )
    assert "toulbar2: not here" in capsys.readouterr().err
    assert "toulbar2: not here" in (out / "report.html").read_text()
    assert json.loads((out / "results.json").read_text())["missing"] == {"toulbar2": "toulbar2: not here"}


def test_a_failing_run_is_shown_not_raised(tmp_path: Path) -> None:
    bad = tmp_path / "bad.uai"
    bad.write_text("MARKOV 1 x")
    data = compare([bad], ["icm"], time_limit=1.0)
    assert data.runs[0].status == "failed"
    assert "bad.uai" in data.runs[0].message
    assert "bad.uai" in page(data)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--methods", "nonsense"], "nonsense"),
        (["--methods", ","], "names no method"),
        (["--time-limit", "0"], "time-limit"),
    ],
)
def test_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str) -> None:
    assert main(["compare", str(folder / "a.uai"), *arguments]) == 3
    assert word in capsys.readouterr().err


def test_patterns_that_the_shell_has_left_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.uai", "a.uai", "c[1].uai"):
        write(FactorGraph([2, 2]), tmp_path / name)
    assert main(["compare", str(tmp_path / "?.uai"), str(tmp_path / "c[1].uai"), "--methods", "icm"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert rows == ["file", "a.uai", "b.uai", "c[1].uai"]
    assert main(["compare", str(tmp_path / "*.wcsp"), "--methods", "icm"]) == 3
    assert "there is no such file" in capsys.readouterr().err


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "no-such-file.uai"]) == 3
    assert "no-such-file.uai" in capsys.readouterr().err


def run(file: str, method: str, score: float | None, seconds: float, repeat: int = 0) -> Run:
    trace = () if score is None else ((seconds, score, None),)
    return Run(file, method, repeat, "time_limit", score, None, 10.0, 1, 50.0, trace=trace)


def test_profile_counts_who_reached_the_best_score_and_when() -> None:
    data = Comparison(
        (run("a", "x", 1.0, 1.0), run("a", "y", 1.0, 4.0), run("b", "x", 0.5, 1.0), run("b", "y", 2.0, 3.0)), {}
    )
    x, y = performance_profile(data)
    assert x.points[-1] == (1.0, 0.5)
    assert y.points == [(1.0, 0.5), (1.0, 0.5), (4.0, 1.0)]


def test_the_worst_repeat_is_shown() -> None:
    data = Comparison((run("a", "x", 1.0, 1.0, 0), run("a", "x", 0.5, 1.0, 1), run("a", "x", None, 1.0, 2)), {})
    assert data.worst("a", "x").repeat == 2


def test_page_is_well_formed_and_self_contained(folder: Path) -> None:
    text = (folder / "out" / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="', text)
    assert "http" not in text
    charts = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(charts) == 2 + 2 * 2
    for chart in charts:
        ElementTree.fromstring(chart)
    for word in ("a.uai", "b.uai.gz", "auto", "trws", "highs"):
        assert word in text


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; .ci/run installs it where it can")
def test_page_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """The page fits the width of a laptop, charts have a size and fit a telephone, too, and it prints."""
    probe = """<script>addEventListener("load", () => {
        const boxes = () => [...document.querySelectorAll("svg")].map(s => s.getBoundingClientRect());
        const page = document.documentElement;
        const found = {wide: page.scrollWidth, seen: innerWidth, heights: boxes().map(box => box.height)};
        page.style.width = "400px";
        found.rights = boxes().map(box => box.right);
        document.title = JSON.stringify(found); });</script>"""
    html = (folder / "out" / "report.html").read_text().replace("</body>", probe + "</body>")
    (tmp_path / "page.html").write_text(html)
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--window-size=1280,900",
    ]
    address, profile = (tmp_path / "page.html").as_uri(), f"--user-data-dir={tmp_path / 'profile'}"
    command = [str(BROWSER), *options, profile]
    dom = subprocess.run(
        [*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    title = re.search(r"<title>(\{.*?\})</title>", dom)
    assert title is not None
    layout = json.loads(title[1].replace("&quot;", '"'))
    assert layout["wide"] <= layout["seen"]
    assert len(layout["heights"]) == 6
    assert min(layout["heights"]) > 60
    assert max(layout["rights"]) <= 400
    pdf = tmp_path / "page.pdf"
    subprocess.run([*command, f"--print-to-pdf={pdf}", address], capture_output=True, timeout=120, check=True)
    assert pdf.read_bytes().startswith(b"%PDF")
