"""Models that are nowhere whole: built part by part, from files, and in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, FormatError, ModelError, Potts, SettingsError, Shard, Sharded, solve
from fginfer.core.arrays import ModelArrays
from fginfer.errors import UnwritableError
from fginfer.parts.keep import Keeper
from fginfer.parts.plan import PartsPlan
from fginfer.parts.rules import RULES
from fginfer.parts.solver import PartsSolver
from fginfer.parts.split import Cut, owners_of


def scores(box: tuple[slice, ...]) -> np.ndarray:
    at = np.mgrid[box].astype(float)
    return np.stack([np.sin(3.1 * at.sum(0) + k * at[0] ** 2) for k in range(3)], -1)


def whole(shape: tuple[int, ...]) -> FactorGraph:
    return FactorGraph.grid(shape, scores(tuple(slice(0, n) for n in shape)), Potts(0, -0.7))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(1, 6))
def test_a_grid_built_by_blocks_is_the_grid(shape: list[int], parts: int) -> None:
    graph = whole(tuple(shape))
    blocks = Sharded.grid(shape, parts, scores, Potts(0, -0.7))
    result = solve(blocks, max_iterations=10, gap=0.0)
    assert result.score == pytest.approx(graph.score(result.labels), rel=1e-9)
    best = solve(graph, time_limit=20)
    assert best.status != "optimal" or result.bound >= best.score - 1e-12 * abs(best.score)
    assert sum(blocks.shard(k).arrays.n_factors for k in range(blocks.n_parts)) == len(graph.factors())


def shards_of(graph: FactorGraph, parts: int) -> Sharded:
    arrays = ModelArrays.of_model(graph.snapshot())
    cut = Cut(arrays, owners_of(arrays, parts))
    return Sharded(cut.shard, cut.n_parts)


def test_files_turns_and_memory_give_the_same_answer(tmp_path: Path) -> None:
    graph = whole((12, 13))
    shards_of(graph, 4).save(tmp_path / "grid")
    there = Sharded.open(tmp_path / "grid")
    answers = [solve(graph, parts=4, max_iterations=25, gap=0.0), solve(tmp_path / "grid", max_iterations=25, gap=0.0)]
    for plan in (PartsPlan(memory=1.0), PartsPlan(memory=3e4)):
        with PartsSolver(there, plan, gap=0.0, max_iterations=25) as solver:
            solver.run()
            answers.append(solver.result())
            assert solver.result().statistics["turns"] > 4
    assert len({(r.iterations, r.labels.tobytes()) for r in answers}) == 1
    assert [r.bound for r in answers] == pytest.approx([answers[0].bound] * 4, rel=1e-12)
    assert answers[0].score == pytest.approx(answers[1].score, rel=1e-12)


def test_a_damaged_or_missing_shard_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "grid"
    shards_of(whole((6, 6)), 3).save(folder)
    with pytest.raises(FormatError, match="no such folder"):
        Sharded.open(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="holds no shards"):
        solve(tmp_path / "empty")
    data = bytearray((folder / "part-00001.npz").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / "part-00001.npz").write_bytes(data)
    with pytest.raises(FormatError, match=r"part-00001\.npz"):
        solve(folder)
    (folder / "part-00001.npz").unlink()
    with pytest.raises(FormatError, match=r"part-00001\.npz: there is no such file, but a later part"):
        solve(folder)


def pair(variables: list[int], border: list[int], labels: int = 2) -> Shard:
    graph = FactorGraph.from_arrays([labels, labels], None, [[0, 1]], tables=[Potts(0, -1)])
    return Shard.of(graph, variables, border)


def test_parts_that_do_not_fit_together() -> None:
    def parts(*shards: Shard) -> Sharded:
        return Sharded(lambda k: shards[k], len(shards))

    with pytest.raises(ModelError, match="parts overlap: part 1 has variable 1 for itself"):
        solve(parts(pair([0, 1], [1]), pair([1, 2], [])))
    with pytest.raises(ModelError, match="no part has variable 2"):
        solve(parts(pair([0, 1], [0, 1]), pair([1, 3], [1])))
    with pytest.raises(ModelError, match="variable 1 has 3 labels in part 1 and 2 in another"):
        solve(parts(pair([0, 1], [1]), pair([1, 2], [1], labels=3)))
    with pytest.raises(ModelError, match="must give a Shard"):
        solve(Sharded(lambda k: None, 2))
    with pytest.raises(SettingsError, match="has 2 parts already"):
        solve(parts(pair([0, 1], [1]), pair([1, 2], [1])), parts=3)
    with pytest.raises(SettingsError, match="evidence"):
        solve(parts(pair([0, 1], [1]), pair([1, 2], [1])), evidence={0: 1})


def test_the_last_shard_is_missed(tmp_path: Path) -> None:
    """Without it the others would make a smaller model."""
    chain = FactorGraph.from_arrays([2] * 12, None, [[i, i + 1] for i in range(11)], tables=[Potts(0, -1)])
    shards_of(chain, 3).save(tmp_path)
    (tmp_path / "part-00002.npz").unlink()
    with pytest.raises(FormatError, match=r"part-00000\.npz: is part 0 of 3, but part 0 of 2 in this folder"):
        solve(tmp_path)


def test_checkpoint_and_resume(tmp_path: Path) -> None:
    graph = FactorGraph.grid((14, 15), np.random.default_rng(1).normal(size=(14, 15, 4)), Potts(0, -0.9))
    settings_ = {"gap": 0.0, "max_iterations": 30}
    plain = solve(graph, parts=3, **settings_)
    for method in (graph, shards_of(graph, 3)):
        folder = tmp_path / type(method).__name__
        parts = 3 if isinstance(method, FactorGraph) else None
        plan = PartsPlan(parts, checkpoint=str(folder), keep_every=4)
        with PartsSolver(method, plan, gap=0.0) as solver:  # ended after a round that is not kept
            solver.run(iterations=11)
        with pytest.raises(SettingsError, match="holds the checkpoint of a run"):
            solve(method, parts=parts, checkpoint=folder)
        later = solve(method, parts=parts, checkpoint=folder, resume=True, **settings_)
        assert (later.bound, later.iterations) == (plain.bound, plain.iterations)
        assert later.labels.tobytes() == plain.labels.tobytes()
    with pytest.raises(SettingsError, match="of another run: parts was 3, not 4"):
        solve(graph, parts=4, checkpoint=tmp_path / "FactorGraph", resume=True)
    (tmp_path / "FactorGraph" / "latest.npz").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"latest\.npz"):
        solve(graph, parts=3, checkpoint=tmp_path / "FactorGraph", resume=True)


def test_slow_rounds_are_kept_sooner(tmp_path: Path, monkeypatch) -> None:
    graph = FactorGraph.grid((14, 15), np.random.default_rng(1).normal(size=(14, 15, 4)), Potts(0, -0.9))
    plain = solve(graph, parts=3, gap=0.0, max_iterations=12)
    monkeypatch.setattr("fginfer.parts.keep.RULES", RULES._replace(keep_seconds=-1.0, keep_share=-1.0))
    with PartsSolver(graph, PartsPlan(3, checkpoint=str(tmp_path)), gap=0.0) as solver:
        solver.run(iterations=5)
    assert (tmp_path / "round4-part0.npz").exists()
    later = solve(graph, parts=3, checkpoint=tmp_path, resume=True, gap=0.0, max_iterations=12)
    assert (later.bound, later.labels.tobytes()) == (plain.bound, plain.labels.tobytes())


def test_a_full_disk_costs_the_checkpoint_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    graph = FactorGraph.grid((14, 15), np.random.default_rng(1).normal(size=(14, 15, 4)), Potts(0, -0.9))
    settings_: dict[str, Any] = {"gap": 0.0, "max_iterations": 12, "seed": 3}
    expected = solve(graph, parts=3, **settings_)
    put, written, number = Keeper.put, 0, 0

    def put_some(self: Keeper, now: int, part: int, state: Any) -> None:
        nonlocal written, number
        written, number = written + 1, number or now
        if written > 4:  # one round and a part of the next
            raise UnwritableError("cannot be written (No space left on device)", "round")
        put(self, now, part, state)

    monkeypatch.setattr(Keeper, "put", put_some)
    with PartsSolver(graph, PartsPlan(3, checkpoint=str(tmp_path), keep_every=2), **settings_) as solver:
        solver.run()
        result = solver.result()
    assert (result.score, result.bound) == (expected.score, expected.bound)
    assert written > 5, "it is tried again"
    assert caplog.text.count("the checkpoint was not written, the solve goes on") == 1
    kept = [f"round{number}-part{p}.npz" for p in range(3)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest.npz", *kept]
    monkeypatch.setattr(Keeper, "put", put)
    later = solve(graph, parts=3, checkpoint=tmp_path, resume=True, **settings_)
    assert (later.score, later.bound) == (expected.score, expected.bound)
