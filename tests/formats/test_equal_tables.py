"""Equal tables and transposes among many, against the definition; records of a file in runs, against a walk."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.formats import equal_tables
from fginfer.formats.equal_tables import EqualShapes
from fginfer.formats.opengm import _starts


def by_definition(tables: list[np.ndarray]) -> list[tuple[int, bool]]:
    firsts: list[int] = []
    out = []
    for k, table in enumerate(tables):
        same = [j for j in firsts if (tables[j] == table).all()]
        square = table.ndim == 2 and table.shape[0] == table.shape[1]
        turned = [j for j in firsts if square and (table == tables[j].T).all()]
        if not same and not turned:
            firsts.append(k)
        out.append(((same or turned or [k])[0], not same and bool(turned)))
    return out


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize("n", [1, 4, 5, 150])
def test_the_first_of_equals(shape: tuple[int, ...], n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    tables = list(rng.integers(0, 2, (n, *shape)).astype(float))
    reverse = rng.random(n) < 0.5
    place = rng.permutation(n)  # where each is among the entries
    listed: list[np.ndarray] = [np.zeros(0)] * n
    for k, table in enumerate(tables):
        listed[place[k]] = table.reshape(-1, order="F" if reverse[k] else "C")
    size = tables[0].size
    monkeypatch.setattr(equal_tables, "BLOCK", 3 * size)
    leader, transposed = EqualShapes(shape, np.concatenate(listed), size * place, reverse).first_of_equals()
    assert list(zip(leader.tolist(), transposed.tolist(), strict=True)) == by_definition(tables)


def test_tables_with_one_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = np.arange(40.0).reshape(10, 4)
    same = EqualShapes((2, 2), tables.reshape(-1), 4 * np.arange(10), np.zeros(10, bool))
    monkeypatch.setattr(EqualShapes, "_hashes", lambda self, transposed=False: np.zeros(10, np.uint64))
    leader, transposed = same.first_of_equals()
    assert leader.tolist() == list(range(10))
    assert not transposed.any()


@pytest.mark.parametrize("seed", range(5))
def test_records_in_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.repeat(rng.integers(0, 4, 30), rng.integers(1, 60, 30))
    numbers: list[int] = []
    begin: list[int] = []
    for n in lengths.tolist():
        begin.append(len(numbers))
        numbers += [7, 8, n, *rng.integers(0, 9, n).tolist()]
    found, end = _starts(np.array(numbers), len(lengths), 3, 2)
    assert found.tolist() == begin
    assert end == len(numbers)
    for cut in (1, 5, len(numbers) // 2):  # what is cut short is not there
        found, _ = _starts(np.array(numbers[:-cut]), len(lengths), 3, 2)
        whole = [b for b, n in zip(begin, lengths.tolist(), strict=True) if b + 3 + n <= len(numbers) - cut]
        assert found.tolist() == whole
    found, end = _starts(np.array(numbers), 2, 3, 2)  # no more than are asked for
    assert (found.tolist(), end) == (begin[:2], begin[2])
