"""Files that want more than their share: other files of the user's, or all of the memory."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Potts, read, write


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "good.h5"
    write(FactorGraph.grid((2, 2), np.zeros((2, 2, 2)), Potts(0, -1)), path)
    secret = tmp_path / "secret.bin"
    np.arange(64.0).tofile(secret)
    return path, secret


def replace(file: h5py.File, name: str) -> h5py.Group:
    del file[name]
    return file


def test_external_links_are_refused(model, tmp_path):
    path, _ = model
    for name in ("gm", "gm/header", "gm/function-id-16006/values", "gm/function-id-16006"):
        hostile = tmp_path / "external.h5"
        hostile.write_bytes(path.read_bytes())
        with h5py.File(hostile, "r+") as file:
            replace(file, name)[name] = h5py.ExternalLink(str(path), name)
        with pytest.raises(FormatError, match="link to elsewhere"):
            read(hostile)


def test_soft_links_are_refused(model):
    path, _ = model
    with h5py.File(path, "r+") as file:
        file["kept"] = file["gm/header"]
        replace(file, "gm/header")["gm/header"] = h5py.SoftLink("/kept")
    with pytest.raises(FormatError, match="link to elsewhere"):
        read(path)


def test_external_storage_is_refused(model):
    path, secret = model
    with h5py.File(path, "r+") as file:
        group = replace(file, "gm/function-id-16006/values")["gm/function-id-16006"]
        group.create_dataset("values", (2,), "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
    with pytest.raises(FormatError, match="data in other files"):
        read(path)


def test_virtual_datasets_are_refused(model, tmp_path):
    path, _ = model
    layout = h5py.VirtualLayout((2,), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (2,))
    with h5py.File(path, "r+") as file:
        replace(file, "gm/function-id-16006/values")["gm/function-id-16006"].create_virtual_dataset("values", layout)
    with pytest.raises(FormatError, match="data in other files"):
        read(path)


def test_one_long_token_takes_no_more_room_than_it_has(tmp_path):
    path = tmp_path / "long.wcsp"
    many = "0 0 1\n" * 20_000
    path.write_text(f"x 2 2 1 10\n2 2\n2 0 1 0 20001\n{many}0 0 {'1' * 200_000}\n")
    with pytest.raises(FormatError, match=r"whole numbers below 10\^18"):
        read(path)
