"""HDF5 files whose chunks unpack to more than they announce, or whose parts are not what their names say."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, read, write

N = 4000
HIDDEN = 1 << 26  # bytes that a chunk holds beyond those it announces
KIND = "gm/function-id-16000/values"


def model() -> FactorGraph:
    rng = np.random.default_rng(3)
    graph = FactorGraph([2] * N)
    for v in range(N):
        graph.add_factor([v], rng.normal(size=2))
    return graph


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "m.h5"
    write(model(), written)
    return written


def renewed(path: Path, make: Callable[[h5py.Group, str, Any], None], name: str = KIND) -> None:
    """The file with another dataset in this place."""
    with h5py.File(path, "r+") as file:
        data = file[name][()]
        del file[name]
        group, last = name.rsplit("/", 1)
        make(file[group], last, data)


def low_level(
    group: h5py.Group, name: str, data: Any, filters: Callable[[Any], None], chunk: int = 1000
) -> h5py.Dataset:
    """An empty dataset with these filters."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((chunk,))
    filters(plist)
    space = h5py.h5s.create_simple(data.shape)
    return h5py.Dataset(h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(data.dtype), space, plist))


def refused(path: Path, says: str) -> None:
    with pytest.raises(FormatError, match=says) as found:
        read(path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"compression": "lzf", "fletcher32": True},
        {"shuffle": True},
        {"fletcher32": True},
        {},
    ],
    ids=str,
)
def test_packed_models_are_read(path: Path, how: dict[str, Any]) -> None:
    wanted = model().to_arrays().unary
    renewed(path, lambda group, name, data: group.create_dataset(name, data=data, chunks=(300,), **how))
    assert (read(path).to_arrays().unary == wanted).all()


def test_a_chunk_may_leave_filters_out(path: Path) -> None:
    def make(group: h5py.Group, name: str, data: Any) -> None:
        dataset = group.create_dataset(name, data=data, chunks=(1000,), compression="gzip", shuffle=True)
        dataset.id.write_direct_chunk((1000,), data[1000:2000].tobytes(), 3)
        dataset.id.write_direct_chunk((2000,), zlib.compress(data[2000:3000].tobytes()), 1)

    renewed(path, make)
    assert (read(path).to_arrays().unary == model().to_arrays().unary).all()


def test_fletcher32_before_deflate(path: Path) -> None:
    def make(group: h5py.Group, name: str, data: Any) -> None:
        dataset = low_level(group, name, data, lambda plist: (plist.set_fletcher32(), plist.set_deflate(6)))
        dataset[...] = data

    renewed(path, make)
    assert (read(path).to_arrays().unary == model().to_arrays().unary).all()


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_chunk_holds_no_more_than_it_announces(path: Path, shuffled: bool) -> None:
    def make(group: h5py.Group, name: str, data: Any) -> None:
        dataset = group.create_dataset(name, data=data, chunks=(1000,), compression="gzip", shuffle=shuffled)
        dataset.id.write_direct_chunk((3000,), zlib.compress(data[3000:4000].tobytes() + bytes(HIDDEN), 9))

    renewed(path, make)
    refused(path, r"announces chunks of 8000 bytes, the one at \(3000,\) unpacks to more than 8000")


def test_a_chunk_holds_no_less(path: Path) -> None:
    def make(group: h5py.Group, name: str, data: Any) -> None:
        dataset = group.create_dataset(name, data=data, chunks=(1000,), compression="gzip")
        dataset.id.write_direct_chunk((3000,), zlib.compress(data[3000:3500].tobytes()))

    renewed(path, make)
    refused(path, r"the one at \(3000,\) unpacks to 4000")
    with h5py.File(path, "r+") as file:
        file[KIND].id.write_direct_chunk((3000,), b"no stream of deflate")
    refused(path, "is damaged")


def test_filters_upon_filters(path: Path) -> None:
    """Deflated twice a kilobyte is a gigabyte; what is shuffled after it was packed cannot be looked through."""

    def twice(group: h5py.Group, name: str, data: Any) -> None:
        dataset = low_level(group, name, data, lambda plist: (plist.set_deflate(9), plist.set_deflate(9)))
        dataset.id.write_direct_chunk((0,), zlib.compress(zlib.compress(bytes(HIDDEN), 9), 9))

    def shuffled(group: h5py.Group, name: str, data: Any) -> None:
        low_level(group, name, data, lambda plist: (plist.set_deflate(9), plist.set_shuffle()))[...] = data

    for make in (twice, shuffled):
        renewed(path, make)
        refused(path, "is packed more than once, or shuffled after it was packed")


def test_other_filters_are_refused(path: Path) -> None:
    """scaleoffset unpacks to as many numbers as its own settings say, whatever the dataset is."""
    renewed(path, lambda group, name, data: group.create_dataset(name, data=data, chunks=(1000,), scaleoffset=3))
    refused(path, "is packed by 'scaleoffset', which is not read here")


def test_lzf_says_the_size_of_a_chunk(path: Path) -> None:
    renewed(path, lambda group, name, data: group.create_dataset(name, data=data, chunks=(1000,), compression="lzf"))
    text = path.read_bytes()
    settings = struct.pack("<II", 261, 8000)
    assert text.count(settings) == 1
    path.write_bytes(text.replace(settings, struct.pack("<II", 261, 10**9)))
    refused(path, "announces chunks of 8000 bytes, and unpacks them to 1000000000")


def test_huge_chunks_of_small_datasets(path: Path) -> None:
    def make(group: h5py.Group, name: str, data: Any) -> None:
        group.create_dataset(name, data=data, maxshape=(None,), chunks=(1 << 27,), compression="gzip")

    renewed(path, make)
    refused(path, "would take 2.*more than a file like this may")


def test_what_is_no_dataset(path: Path) -> None:
    names = ("gm/header", "gm/numbers-of-states", "gm/factors", KIND)
    good = path.read_bytes()
    for name in names:
        for make in (
            lambda group, last, data: group.__setitem__(last, np.dtype("f8")),  # a committed datatype
            lambda group, last, data: group.create_group(last),
        ):
            path.write_bytes(good)
            renewed(path, make, name)
            refused(path, f"'{name.removeprefix('gm/')}' is not a dataset")
        for value in (h5py.Empty("f8"), np.array([b"text"]), np.zeros(3, [("a", "f8")])):
            path.write_bytes(good)
            renewed(path, lambda group, last, data, value=value: group.create_dataset(last, data=value), name)
            refused(path, "does not hold numbers")


def test_a_committed_datatype_in_place_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file["gm"] = np.dtype("f8")
    refused(path, "there are 0 OpenGM models in this file")
