"""Bytes of saved files are changed, one at a time: a file is refused, or loaded as it was saved, to the bit."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Potts, Result, read, solve, write
from fginfer.archives import CHECKSUM, write_arrays

pytest.importorskip("sklearn")
from fginfer.extreme import ExtremeClassifier
from fginfer.learn import StructuredSVM

X = [np.eye(3)[:2] for _ in range(4)]
Y = [[0, 1]] * 4
FLIPS = 1000  # in each kind of file
DENSE = np.abs(np.random.default_rng(1).normal(size=(12, 4)))


def graph() -> FactorGraph:
    made = FactorGraph.grid((2, 2), np.arange(8.0).reshape(2, 2, 2), Potts(0, -1))
    made.cutoff = -50.0
    return made


def seen_graph(path: Path) -> Any:
    found = read(path)
    arrays = vars(found.to_arrays())
    return found.cutoff, found.n_factors, {k: seen_array(v) for k, v in arrays.items()}


def seen_array(value: Any) -> Any:
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)


def seen_result(path: Path) -> Any:
    found = Result.load(path)
    flat = None if found.marginals is None else found.marginals.flat.tobytes()  # type: ignore[attr-defined]
    return repr(found.to_dict()), flat, None if found.messages is None else found.messages.tobytes()


def seen_model(path: Path) -> Any:
    header, arrays = StructuredSVM.load(path).pack()
    return json.dumps(header), {name: seen_array(array) for name, array in arrays.items()}


def seen_extreme(path: Path) -> Any:
    found = ExtremeClassifier.load(path)
    weights = found.model_.weights
    parts = (weights.begin, weights.index, weights.value, found.model_.bias, found.model_.order, found.classes_)
    return [seen_array(part) for part in parts], repr(found.get_params()), repr(found.model_.header)


SAVED: dict[str, tuple[str, Callable[[Path], Any], Callable[[Path], Any]]] = {
    "graph": (".npz", lambda p: write(graph(), p), seen_graph),
    "result": (".npz", lambda p: solve(graph(), "gdmm").save(p), seen_result),
    "learned": (".npz", lambda p: StructuredSVM(max_iter=2).fit(X, Y).save(p), seen_model),
    "extreme": (".fgx", lambda p: ExtremeClassifier(lam=0.01).fit(DENSE, DENSE.argmax(1)).save(p), seen_extreme),
}


@pytest.mark.parametrize("what", SAVED)
def test_no_changed_byte_changes_what_is_loaded(what: str, tmp_path: Path) -> None:
    suffix, save, seen = SAVED[what]
    path, rng = tmp_path / f"saved{suffix}", random.Random(0)
    save(path)
    whole, wanted = path.read_bytes(), seen(path)
    refused = 0
    ends = {*range(64), *range(len(whole) - 64, len(whole))}  # what says where everything else is
    places = sorted({*rng.sample(range(len(whole)), min(FLIPS, len(whole))), *ends})
    for at in places:
        changed = bytearray(whole)
        changed[at] ^= rng.choice((1, 2, 4, 8, 16, 32, 64, 128, 255))
        path.write_bytes(changed)
        try:
            found = seen(path)
        except FormatError:
            refused += 1
        else:
            assert found == wanted, f"byte {at}"
    assert refused > len(places) / 2


@pytest.mark.parametrize("what", SAVED)
def test_a_file_that_ends_early_or_goes_on_is_refused(what: str, tmp_path: Path) -> None:
    suffix, save, seen = SAVED[what]
    path = tmp_path / f"saved{suffix}"
    save(path)
    whole, wanted = path.read_bytes(), seen(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError):
            seen(path)
    path.write_bytes(whole + b"more")
    with contextlib.suppress(FormatError):
        assert seen(path) == wanted


@pytest.mark.parametrize("what", ["graph", "result", "learned"])
def test_another_member_is_noticed(what: str, tmp_path: Path) -> None:
    """Members whose own check sums are right, but which are gone, added or exchanged."""
    _, save, seen = SAVED[what]
    path = tmp_path / "saved.npz"
    save(path)
    with np.load(path) as found:
        arrays = dict(found)
    for name, array in arrays.items():
        changes: list[dict[str, Any]] = [{k: v for k, v in arrays.items() if k != name}]
        if array.size and array.dtype.kind in "iuf" and name != CHECKSUM:
            changes.append(arrays | {name: (array + 1).astype(array.dtype)})
        changes.append(arrays | {f"{name}_too": array})
        for members in changes:
            np.savez(path, **members)
            with pytest.raises(FormatError):
                seen(path)


def test_files_of_earlier_versions_have_no_check_sum_and_load(tmp_path: Path) -> None:
    path = tmp_path / "old.npz"
    for what, member, field in (("result", "result", "version"), ("learned", "header", "fginfer_model")):
        _, save, seen = SAVED[what]
        save(path)
        wanted = seen(path)
        with np.load(path) as found:
            arrays = {name: found[name] for name in found.files if name != CHECKSUM}
        header = json.loads(arrays[member].tobytes())
        assert header.pop(field) == 2
        header |= {} if what == "result" else {field: 1}
        np.savez(path, **(arrays | {member: np.frombuffer(json.dumps(header).encode(), np.uint8)}))
        assert seen(path) == wanted
    _, save, seen = SAVED["graph"]
    save(path)
    wanted = seen(path)
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files if name != CHECKSUM}
    np.savez(path, **(arrays | {"fginfer": np.int64(2)}))
    assert seen(path) == wanted


def test_an_extreme_model_of_version_1_loads(tmp_path: Path) -> None:
    path = tmp_path / "old.fgx"
    _, save, seen = SAVED["extreme"]
    save(path)
    wanted, whole = seen(path), path.read_bytes()
    path.write_bytes(b"FGIXMODL" + whole[8:-4].replace(b'"version": 2', b'"version": 1'))
    assert seen(path) == wanted


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bound": "nan"}, "bound is nan"),
        ({"bound": "inf"}, "bound is inf"),
        ({"score": float("nan")}, "score is nan"),
        ({"score": float("inf")}, "score is inf"),
        ({"bound": "-1000.0"}, "bound -1000.0 is below its score"),
        ({"bound": "-inf"}, "bound -inf is below its score"),
        ({"status": "solved"}, "status is 'solved'"),
        ({"unit": -1.0}, "below 0"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"iterations": -1}, "below 0"),
        ({"version": 3}, "later fginfer"),
    ],
)
def test_results_that_no_solver_gives_are_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    solve(graph(), "trws").save(path)
    with np.load(path) as found:
        arrays = dict(found)
    header = json.loads(arrays["result"].tobytes()) | changes
    with open(path, "wb") as file:
        write_arrays(file, arrays | {"result": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(FormatError, match=says):
        Result.load(path)


@pytest.mark.parametrize(
    "labels",
    [[0, 0, -1, 0], [0, 0, 2, 0], [0, 0, 0], [0.5, 0, 0, 0], [[0, 0, 0, 0]]],
    ids=["negative", "too large", "too few", "fractional", "a table"],
)
def test_labels_that_no_solver_gives_are_refused(labels: Any, tmp_path: Path) -> None:
    path, array = tmp_path / "r.npz", np.array(labels)
    result = solve(graph(), "gdmm")
    assert result.marginals is not None
    result.save(path)
    with np.load(path) as found:
        arrays = dict(found)
    kind = np.float64 if array.dtype.kind == "f" else np.int32
    with open(path, "wb") as file:
        write_arrays(file, arrays | {"labels": array.astype(kind)})
    with pytest.raises(FormatError, match="label"):
        Result.load(path)
