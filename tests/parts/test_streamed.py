"""A UAI file cut as it is read: the parts are those of the model that is read whole."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, FormatError, Potts, Sharded, solve, write
from fginfer.cli import main
from fginfer.parts.streamed import shard_uai


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["uai", "LG"]))
def test_scores_of_parts_add_up_to_the_score(tmp_path_factory, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    graph = FactorGraph(rng.integers(1, 4, n))
    for _ in range(int(rng.integers(0, 9))):
        scope = rng.choice(n, min(n, int(rng.integers(0, 4))), replace=False)
        table = rng.normal(size=tuple(graph.cards[scope]))
        table[rng.random(table.shape) < 0.1] = -np.inf
        graph.add_factor(scope.tolist(), table)
    folder = tmp_path_factory.mktemp("cut")
    path = folder / f"model.{kind}"
    write(graph, path)
    n_parts = shard_uai(path, folder / "parts", int(rng.integers(1, n + 1)), kind == "LG")
    sharded = Sharded.open(folder / "parts")
    shards = [sharded.shard(k) for k in range(n_parts)]
    owners = np.concatenate([s.variables[s.n_border :] for s in shards])
    assert len(owners) == len(np.unique(owners))
    for x in product(*(range(c) for c in graph.cards)):
        parts = [s.model().score(np.array([x[v] for v in s.variables], np.int32)) for s in shards]
        assert sum(parts) == pytest.approx(graph.score(list(x)), rel=1e-9, abs=1e-9)


def test_the_command_cuts_grids_and_compressed_files(tmp_path: Path) -> None:
    unary = np.random.default_rng(0).normal(size=(9, 10, 2))
    graph = FactorGraph.grid((9, 10), unary, Potts(0, -0.5))
    write(graph, tmp_path / "grid.uai.gz")
    assert main(["shard", str(tmp_path / "grid.uai.gz"), str(tmp_path / "parts"), "--parts", "4"]) == 0
    result = solve(tmp_path / "parts")
    assert result.score == pytest.approx(solve(graph).score)
    assert result.statistics["parts"] == 4
    # Unary functions do not hide that the pairs make a grid, which is cut into blocks.
    shards = [Sharded.open(tmp_path / "parts").shard(k) for k in range(4)]
    assert sum(s.n_border for s in shards) <= 2 * (9 + 10) + 6


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.25", "quarter", "line 9 at '{}': expected a number"),
        ("0.25", "-0.25", "line 9 at '{}': expected a potential, 0 or more, that is a number"),
        ("0.25", "nan", "line 9 at '{}': expected a potential, 0 or more, that is a number"),
        ("\n4\n", "\n5\n", "function 0 has 4 states"),
        (" 4.0", "", "the file ends where an entry of function 0 was expected"),
        ("2 0 1", "2 0 7", "line 5 at '7': expected a variable, from 0 to 1"),
        ("MARKOV", "MARKOW", "line 1 at 'MARKOW': expected MARKOV or BAYES"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = "MARKOV\n2\n2 2\n1\n2 0 1\n\n\n4\n0.25 1.0\n2.0 4.0\n"
    path = tmp_path / "model.uai.gz"
    path.write_bytes(gzip.compress(text.replace(old, new).encode()))
    with pytest.raises(FormatError) as error:
        shard_uai(path, tmp_path / "parts", 2, False)
    assert str(path) in str(error.value)
    assert said.format(new) in str(error.value)
    assert not (tmp_path / "parts").exists()
