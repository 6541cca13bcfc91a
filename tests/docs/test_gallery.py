"""Every script of the gallery runs and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem.removeprefix("plot_"))
def test_a_script_runs_and_draws(path: Path) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()
    for number in plt.get_fignums():
        assert plt.figure(number).axes
    plt.close("all")
