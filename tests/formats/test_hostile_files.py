"""Files that want more than their share: other files of the user's, or all of the memory."""

from __future__ import annotations

import gzip
import tracemalloc

import h5py
import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Potts, SettingsError, read, write


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


SMALL_AND_GREEDY = {
    "table.wcsp": "x 2 16384 1 10\n16384 16384\n2 0 1 0 0\n",
    "formula.wcsp": "x 2 16384 1 10\n16384 16384\n2 0 1 -1 >= 0 0\n",
    "labels.wcsp": "x 1 268435455 0 10\n268435455\n",
    "default.cfn": '{{x "<5"} {a: 16384, b: 16384} {f: {scope: [a b], defaultcost: 0, costs: []}}}',
    "labels.cfn": '{{x "<5"} {a: 268435455} {}}',
}


@pytest.mark.parametrize("name", SMALL_AND_GREEDY)
def test_a_few_bytes_do_not_cost_gigabytes(tmp_path, name: str) -> None:
    path = tmp_path / name
    path.write_text(SMALL_AND_GREEDY[name])
    tracemalloc.start()
    with pytest.raises(
        FormatError, match=r"than a file like this may; read\(\.\.\., max_memory=(\d+)\) or --max-memory \1 allows it"
    ):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.slow
def test_archives_that_unpack_to_gigabytes(tmp_path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, fginfer=1, constant=0.0, given_factors=0, cards=np.ones(50_000_000, np.int32))
    with pytest.raises(FormatError, match="would take"):
        read(path, max_memory=1e8)
    hdf = tmp_path / "bomb.h5"
    with h5py.File(hdf, "w") as file:
        group = file.create_group("gm")
        group.create_dataset("header", data=np.array([2, 0, 1, 0, 0, 1], np.uint64))
        group.create_dataset("numbers-of-states", data=np.ones(40_000_000, np.uint8), compression="gzip", chunks=True)
    with pytest.raises(FormatError, match="would take"):
        read(hdf)
    packed = tmp_path / "bomb.npz.gz"
    with gzip.open(packed, "wb") as stream:
        for _ in range(300):
            stream.write(bytes(1 << 20))
    with pytest.raises(FormatError, match="bytes unpack to more than"):
        read(packed)


@pytest.mark.slow
def test_the_limit_is_the_users(tmp_path) -> None:
    path = tmp_path / "m.wcsp"
    path.write_text("x 2 4000 1 10\n4000 4000\n2 0 1 3 1\n5 6 0\n")
    assert read(path).score([5, 6]) == 0.0
    with pytest.raises(FormatError, match=r"would take 0\.128 GB"):
        read(path, max_memory=1e8)
    for wrong in (0, -1, "1GB", True):
        with pytest.raises(SettingsError, match="max_memory must be a number of bytes"):
            read(path, max_memory=wrong)


def test_lonely_variables_of_uai_files(tmp_path) -> None:
    path = tmp_path / "m.uai"
    path.write_text("MARKOV 1 200000000 0\n")
    with pytest.raises(FormatError, match="200000000 labels; that cannot be meant"):
        read(path)


ONES = 70  # variables with one label: their joint table is small, but has more axes than numpy gives

HOSTILE = {
    "arity.wcsp": (
        f"x {ONES} 1 1 9\n{'1 ' * ONES}\n{ONES} {' '.join(map(str, range(ONES)))} 0 0\n",
        "70 variables; (64|32) are",
    ),
    "arity.cfn": (
        f"{{{{x <9}} {{{'1 ' * ONES}}} {{f: {{scope: [{' '.join(map(str, range(ONES)))}] costs: [0]}}}}}}",
        "70 variables; (64|32) are",
    ),
    "negative.wcsp": ("x 2 2 0 10\n2 -7\n", "expected the domain size of variable 1, from 1 to 2"),
    "minus.wcsp": ("x 2 2 0 10\n2 -\n", "expected the domain size of variable 1, a whole number"),
    "negative.cfn": ("{{x <9} {a: -20.5} {}}", "variable 0 needs between 1 and"),
    "minus.cfn": ("{{x <9} {a: 2} {f: {scope: [a] costs: [0 -inf]}}}", "only inf forbids"),
    "nested.cfn": ("{{x <9} {a: " + "[" * 5000, "expected a label"),
    "which.cfn": (
        "{{x <9} {a: 2 b: 2} {f: {scope: [a] costs: [0 1]} f: {scope: [b] costs: [1 0]} g: {scope: [b] costs: f}}}",
        "one of several functions of that name",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_is_refused_for_what_it_is(tmp_path, name: str) -> None:
    path, (text, says) = tmp_path / name, HOSTILE[name]
    path.write_text(text)
    with pytest.raises(FormatError, match=says):
        read(path)


def test_what_toulbar2_reads_is_read(tmp_path) -> None:
    path = tmp_path / "m.cfn"
    path.write_text('{{x <9} {29-1: 2 b: ["x" y]} {f: {scope: [29-1] costs: [3 inf]} f: {scope: [b] costs: [1 0]}}}')
    graph = read(path)
    assert [graph.score(x) for x in ([0, 0], [0, 1], [1, 0])] == [-4.0, -3.0, -np.inf]
    path.write_text("{{x >-9} {a: 2} {f: {scope: [a] defaultcost: -inf costs: [1 2]}}}")
    assert [read(path).score([k]) for k in (0, 1)] == [-np.inf, 2.0]
    path = tmp_path / "m.wcsp"
    path.write_text("a-1-2 2 30 2 100\n30 2\n1 0 0 1\n29 7\n2 0 1-1 >= 28 0\n")
    assert read(path).score([29, 1]) == -7.0
    path.write_text("x 2 30 2 100\n30 2\n1 0 0 1\n29-0 1 1 0 1\n1 inf\n")
    assert [read(path).score([29, k]) for k in (0, 1)] == [0.0, -np.inf]


def test_one_line_without_end(tmp_path) -> None:
    path = tmp_path / "m.cfn.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(b'{{x <9} {a: 2} {f: {scope: [a] "costs": [0')
        stream.write(b" " * (20 << 20))
        stream.write(b"4] }}}")
    tracemalloc.start()
    assert read(path).score([1]) == -4.0
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    for name in ("word.cfn.gz", "word.wcsp.gz", "quoted.cfn.gz"):
        with gzip.open(tmp_path / name, "wb", 1) as stream:
            stream.write(b'"' * name.startswith("q") + b"1" * (8 << 20))
        with pytest.raises(FormatError, match="a token of more than 1048576 bytes"):
            read(tmp_path / name)


def test_long_lines_are_cut_between_tokens(tmp_path) -> None:
    rng = np.random.default_rng(1)
    names = [f"label {k} {'x' * int(rng.integers(200))}" for k in range(20_000)]
    path = tmp_path / "m.cfn"
    path.write_text("# " + "c" * (3 << 20) + '\n{{x <9} {"a b": [' + ", ".join(f'"{n}"' for n in names) + "]} {}}")
    assert read(path).cards.tolist() == [20_000]
