"""A toy package adds a format, a command and a method by entry points."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fginfer import FactorGraph, FormatError, SettingsError, available_methods, plugins, read, solve, write
from fginfer.cli import main

HERE = Path(__file__).parent / "toy_package"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer lays it down: the module, and its metadata beside it."""
    site = tmp_path / "site"
    metadata = site / "toy_package-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(HERE / "toy_package.py", site)
    shutil.copy(HERE / "entry_points.txt", metadata)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(site))
    plugins.added.cache_clear()
    yield
    plugins.added.cache_clear()
    sys.modules.pop("toy_package", None)


@pytest.mark.filterwarnings("ignore:broken of toy-package:RuntimeWarning")
def test_a_format(toy: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = FactorGraph([2, 3])
    graph.add_factor([0], [0.0, 1.5])
    graph.add_factor([1], [0.25, 0.0, -1.0])
    path = tmp_path / "model.toy"
    write(graph, path)
    assert read(path).score([1, 0]) == 1.75
    assert read(path, format="toy").n_variables == 2
    assert main(["solve", str(path), "--quiet"]) == 0
    assert "score   1.75" in capsys.readouterr().out
    assert main(["convert", str(path), str(tmp_path / "model.uai")]) == 0
    assert read(tmp_path / "model.uai").score([1, 0]) == pytest.approx(1.75)  # .uai is ours, whoever wants the name
    (tmp_path / "model.unheard").write_text("?")
    with pytest.raises(FormatError, match=r"\.toy"):
        read(tmp_path / "model.unheard")


def test_a_command(toy: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "2", "3"]) == 0
    assert capsys.readouterr().out == "6\n"
    assert main(["--help"]) == 0
    assert "how many labelings a model has" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:number of toy-package:RuntimeWarning")
def test_a_method(toy: None) -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.5, 0.0], [0.0, 2.0]])
    result = solve(graph, "first")
    assert (result.method, result.status, result.score, result.bound) == ("first", "converged", 0.5, None)
    assert available_methods()[-1] == "first"
    with pytest.raises(SettingsError, match="first"):
        solve(graph, "frist")


def test_what_cannot_be_used_is_left_out_with_a_warning(toy: None) -> None:
    with pytest.warns(RuntimeWarning, match=r"broken of toy-package .* cannot be loaded"):
        assert set(plugins.added("formats")) == {"toy", "uai"}
    with pytest.warns(RuntimeWarning, match=r"number of toy-package .* cannot be called"):
        assert set(plugins.added("methods")) == {"first"}
