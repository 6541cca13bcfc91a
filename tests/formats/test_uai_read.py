"""Reading UAI files: values, structure, compression, and every way in which a file can be wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fginfer
from fginfer import FormatError

MODEL = """MARKOV
3
2 2 3
5
0
1 2
2 0 1
2 1 2
1 2

1
 2.0
3
 1 0 4
4
 1.000 2.000
 3.000 4.000
6
 .1 .2 .3
 .4 .5 .6
3
 1 1 2
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def log_entries(tmp_path: Path, tokens: list[str]) -> list[float]:
    """The entries of one table, read from a file of log scores."""
    text = f"MARKOV 2 1 {len(tokens)} 1 2 0 1 {len(tokens)} " + " ".join(tokens)
    graph = fginfer.read(write(tmp_path / "entries.LG", text))
    return [graph.score([0, k]) for k in range(len(tokens))]


def test_values_and_structure(tmp_path: Path) -> None:
    graph = fginfer.read(write(tmp_path / "m.uai", MODEL))
    assert graph.cards.tolist() == [2, 2, 3]
    assert graph.score([1, 0, 2]) == pytest.approx(
        math.log(2) + math.log(4) + math.log(3) + math.log(0.3) + math.log(2)
    )
    assert graph.score([1, 0, 1]) == -math.inf


def test_other_editors(tmp_path: Path) -> None:
    path = tmp_path / "m.uai"
    path.write_bytes(b"\xef\xbb\xbf" + MODEL.lower().replace("\n", "\r\n").encode())
    assert fginfer.read(path).score([1, 0, 2]) == fginfer.read(write(tmp_path / "n.uai", MODEL)).score([1, 0, 2])


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)])
def test_compressed(tmp_path: Path, suffix: str, opener: object) -> None:
    path = tmp_path / f"m.uai{suffix}"
    with opener(path, "wb") as stream:  # type: ignore[operator]
        stream.write(MODEL.encode())
    assert fginfer.read(path).score([1, 0, 2]) == fginfer.read(write(tmp_path / "m.uai", MODEL)).score([1, 0, 2])


def test_numbers_are_read_as_python_reads_them(tmp_path: Path) -> None:
    rng = random.Random(1)
    tokens = [
        "0",
        "-0",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740993.0",
        "123456789012345678901234567890e-25",
        "1.e3",
        ".5",
    ]
    tokens += [
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "1.7976931348623158e308",
    ]
    tokens += ["2." + "0" * 700 + "1", "9007199254740993." + "0" * 900 + "1", "1" + "0" * 300, "0." + "0" * 300 + "123"]
    for _ in range(4000):
        x = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
        if math.isfinite(x):
            tokens += [repr(x), f"{x:.17e}", f"{x:.24e}", f"{x:.5g}"]
        digits, exponent = rng.randrange(1, 40), rng.randrange(-345, 290)
        tokens.append(f"{rng.randrange(10**digits)}e{exponent - digits}")
        m = rng.getrandbits(53) | 1 << 52  # midpoints between two doubles, and just beside them
        middle = (2 * m + 1) << rng.randrange(0, 60)
        tokens += [str(middle), f"{middle}.{'0' * rng.randrange(30)}1", f"{middle - 1}.9999"]
        tokens.append(f"{(2 * m + 1) * 5 ** rng.randrange(1, 30)}e-{rng.randrange(1, 30)}")
    tokens = [t for t in tokens if math.isfinite(float(t))]
    read = log_entries(tmp_path, tokens)
    wrong = [(t, a) for t, a in zip(tokens, read, strict=True) if a != float(t)]
    assert not wrong


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_any_double(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    assert log_entries(tmp_path_factory.mktemp("d"), [repr(v) for v in values]) == values


def test_out_of_range_potentials_keep_their_logarithm(tmp_path: Path) -> None:
    tokens = ["1e-400", "3e-1000", "1e400", "0e-400", "1e-320"]
    path = write(tmp_path / "m.uai", "MARKOV 2 1 5 1 2 0 1 5 " + " ".join(tokens))
    graph = fginfer.read(path)
    scores = [graph.score([0, k]) for k in range(5)]
    assert scores[0] == pytest.approx(-400 * math.log(10), rel=1e-15)
    assert scores[1] == pytest.approx(-1000 * math.log(10) + math.log(3), rel=1e-15)
    assert scores[2] == pytest.approx(400 * math.log(10), rel=1e-15)
    assert scores[3] == -math.inf
    assert scores[4] == math.log(1e-320)


def test_pieces_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    entries = [repr(float(v)) for v in rng.random(2000)]
    text = "MARKOV\n2\n40 50\n1\n2 0 1\n2000\n" + "\n".join(" ".join(entries[k : k + 7]) for k in range(0, 2000, 7))
    path = write(tmp_path / "m.uai", text)
    whole = fginfer.read(path)
    for size in (1, 2, 3, 7, 64, 65, 100, 1001):
        monkeypatch.setattr("fginfer.formats.uai._PIECE", size)
        pieces = fginfer.read(path)
        for _ in range(20):
            x = [rng.integers(40), rng.integers(50)]
            assert pieces.score(x) == whole.score(x)


WRONG = [
    ("", 1, "end of file", "empty"),
    ("  \n\n", 3, "end of file", "empty"),
    ("\x00\x01\x02binary\xff", 1, None, "MARKOV or BAYES"),
    ("MARKOV\n-1", 2, "-1", "number of variables"),
    ("MARKOV\n1000000000000000\n2", 2, "1000000000000000", "too many variables"),
    ("MARKOV\n2\n2", 3, "end of file", "1 of 2 label counts"),
    ("MARKOV\n2\n2 0\n", 3, "0", "label count of variable 1"),
    ("MARKOV\n2\n2 2\n1\n3 0 1", 5, "3", "more variables than"),
    ("MARKOV\n2\n2 2\n1\n2 0 2", 5, "2", "variable from 0 to 1"),
    ("MARKOV\n2\n2 2\n1\n2 1 1", 5, "1", "twice"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n5\n", 7, "5", "must be 4"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3", 9, "end of file", "3 of its 4 entries"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3 -4", 9, "-4", "entry 3 is negative"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3 nan", 9, "nan", "NaN"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3 inf", 9, "inf", "infinite"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3 4x", 9, "4x", "not a number"),
    ("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2\n3 4\n5", 10, "5", "extra text"),
    ("MARKOV\n2\n30000000 33333334\n1\n2 0 1\n1000000020000000\n1 2 3", 7, "end of file", "3 of its"),
    ("MARKOV\n9\n" + "2000000000 " * 9 + "\n1\n9 0 1 2 3 4 5 6 7 8\n7\n", 6, "7", "2^63"),
    ("MARKOV\n1\n2000000000\n0\n", 5, "end of file", "2000000000 labels"),
    ("\xff\xfeM\0A\0R\0K\0O\0V\0\n\0", 1, None, "UTF-16"),
    ("\xfe\xff\0M\0A\0R\0K\0O\0V\0\n", 1, None, "UTF-16"),
    ("MARKOV\n1\n" + "2" * 5000, 3, None, "token of more than"),
    ("MARKOV\n1\n2\n1 1 0\n2\n0." + "1" * 5000 + " " + "1".zfill(99), 6, None, "token of more than"),
]


@pytest.mark.parametrize(("text", "line", "token", "says"), WRONG)
def test_wrong_files(tmp_path: Path, text: str, line: int, token: str | None, says: str) -> None:
    path = tmp_path / "wrong.uai"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError) as caught:
        fginfer.read(path)
    error = caught.value
    assert (error.path, error.line) == (str(path), line)
    assert error.token if token is None else error.token == token
    assert says in str(error)
    assert "\n" not in str(error)


def test_log_files(tmp_path: Path) -> None:
    graph = fginfer.read(write(tmp_path / "m.LG", "MARKOV 1 4 1 1 0 4 -1.5 -inf 0 2"))
    assert [graph.score([k]) for k in range(4)] == [-1.5, -math.inf, 0.0, 2.0]
    with pytest.raises(FormatError, match="infinite"):
        fginfer.read(write(tmp_path / "n.LG", "MARKOV 1 2 1 1 0 2 inf 0"))


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        fginfer.read(tmp_path / "none.uai")
    with pytest.raises(FormatError, match=r"cannot be read as a \.gz file"):
        fginfer.read(write(tmp_path / "m.uai.gz", MODEL))
    damaged = tmp_path / "d.uai.gz"
    damaged.write_bytes(gzip.compress(MODEL.encode())[:-10])
    with pytest.raises(FormatError, match=r"cannot be read as a \.gz file"):
        fginfer.read(damaged)


def test_sums_that_overflow_are_refused(tmp_path: Path) -> None:
    for scores in ("1e308", "-1e308"):
        path = write(tmp_path / "m.LG", f"MARKOV 1 1\n2\n1 0\n1 0\n1 {scores}\n1\n{scores}")
        with pytest.raises(FormatError, match="variable 0 add up to more than a double holds"):
            fginfer.read(path)


ANNOUNCED = {
    "table.uai": "MARKOV 2 30000000 33333334 1 2 0 1 1000000020000000 1 2 3",
    "labels.uai": "MARKOV 3 2000000000 2000000000 2 1 1 2 2 0.5 0.5",
    "variables.uai": "MARKOV 2000000000 2 2 2",
    "factors.uai": "MARKOV 1 2 2000000000 1 0",
    "tuples.wcsp": "m 2 100000000 1 9 30000000 33333334 2 0 1 0 1000000000000000 0 0 1",
    "default.wcsp": "m 2 100000000 1 9 30000000 33333334 2 0 1 0 0",
    "table.cfn": '{"problem": {"name": "m", "mustbe": "<9"}, "variables": [30000000 33333334], '
    '"functions": [[[0 1] costs [1]]]}',
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_nothing_is_allocated_for_what_is_only_announced(tmp_path: Path, name: str) -> None:
    """A process that may not grow by 200 MB (where the system can say so) still reads on to the error."""
    path = write(tmp_path / name, ANNOUNCED[name])
    code = f"""
import os, resource, fginfer
if os.path.exists("/proc/self/statm"):
    with open("/proc/self/statm") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 200 * 2**20, resource.RLIM_INFINITY))
try:
    fginfer.read({str(path)!r})
except fginfer.FormatError as error:
    print("refused:", error)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"refused: {path}"), done.stderr


def long_text(seed: int, damage: str = "") -> str:
    """Over a megabyte of tables in all spellings, cut into lines anywhere; somewhere in it, perhaps, a wrong word."""
    rng = random.Random(seed)
    words = ["MARKOV", "40", *["9"] * 40, "2001", "1 3", *(f"2 {i % 39} 39" for i in range(2000)), "9", *"123456789"]
    body: list[str] = []
    for table in range(2000):
        body.append("81")
        for _ in range(81):
            spelling = rng.choice(["{:.3g}", "{!r}", "{:e}", "0", "+1", "1e-400", "{:.40f}", ".5", "000{:.2f}"])
            body.append(spelling.format(table % 7 + rng.random()))
    if damage:
        body[rng.randrange(len(body))] = damage
    return "".join(word + rng.choice(["\n", " ", " ", "\t", "\r\n"]) for word in words + body)


@pytest.mark.parametrize("name", ["m.uai", "m.uai.gz"])
def test_threads_read_the_same_model(tmp_path: Path, name: str) -> None:
    text = long_text(0).encode()
    assert len(text) > 1 << 20
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    alone = fginfer.read(tmp_path / name).to_arrays()
    for threads in (2, 3):
        together = fginfer.read(tmp_path / name, threads=threads).to_arrays()
        for one, other in zip(vars(alone).values(), vars(together).values(), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("damage", ["nan", "-1", "x", "inf", "1e", "\0", "7" * 5000 + "x", "0.5 0.5", "81 81"])
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_find_the_same_error(tmp_path: Path, damage: str, seed: int) -> None:
    path = write(tmp_path / "m.uai", long_text(seed, damage))
    found = []
    for threads in (1, 2, 3):
        with pytest.raises(FormatError) as caught:
            fginfer.read(path, threads=threads)
        found.append((str(caught.value), caught.value.line, caught.value.token))
    assert found[0] == found[1] == found[2]


def test_a_damaged_archive_is_found_by_the_thread_that_unpacks(tmp_path: Path) -> None:
    path = tmp_path / "m.uai.gz"
    path.write_bytes(gzip.compress(long_text(3).encode(), 1)[:-1000])
    with pytest.raises(FormatError, match=r"cannot be read as a \.gz file"):
        fginfer.read(path, threads=2)
    with pytest.raises(fginfer.SettingsError, match="threads"):
        fginfer.read(path, threads=0)
