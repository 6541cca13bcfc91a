"""Files in odd places and of odd kinds: pipes, directories, links in a circle, names that no file can have, no text."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, FginferError, FormatError, Potts, Result, read, write
from fginfer.extreme import ExtremeClassifier
from fginfer.extreme.reader import read_training
from fginfer.formats import read_evidence, read_solution
from fginfer.learn import SkipGram, StructuredSVM, read_conll, read_conllu, read_svmlight
from fginfer.learn.crf import read_crfsuite
from fginfer.replacing import clear_leftovers, temporary_name

CORPUS = Path(__file__).parent.parent / "corpus"
THREE = FactorGraph([3, 3, 3])
READERS: dict[str, Callable[[Path], object]] = {
    "small.uai": read, "logs.LG": read, "shared.wcsp": read, "names.cfn": read, "x.npz": read, "x.h5": read,
    "sample.evid": lambda p: read_evidence(p, THREE), "two.MPE": lambda p: read_solution(p, THREE),
    "words.conll": read_conll, "words.conllu": read_conllu, "rows.svm": read_svmlight,
    "rows.xml.txt": lambda p: read_training(p, True, False, True), "words.vec": SkipGram.load,
    "tags.crfsuite": read_crfsuite, "model.npz": StructuredSVM.load, "model.fgx": ExtremeClassifier.load,
    "result.npz": Result.load,
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_said(name: str, tmp_path: Path) -> None:
    read_it, suffix = READERS[name], name[name.index(".") :]
    folder, circle = tmp_path / f"folder{suffix}", tmp_path / f"circle{suffix}"
    folder.mkdir()
    circle.symlink_to(circle)
    for path, message in [
        (folder, r"cannot be read \(Is a directory\)"),
        (circle, r"cannot be read \(Too many levels of symbolic links\)"),
        (tmp_path / f"{'x' * 300}{suffix}", r"cannot be read \(File name too long\)"),
    ]:  # fmt: skip
        with pytest.raises(FormatError, match=message):
            read_it(path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_it(tmp_path / f"none{suffix}")
    with pytest.raises(FginferError):
        read_it(tmp_path / f"zero\0{suffix}")
    empty = tmp_path / f"empty{suffix}"
    empty.write_bytes(b"")
    with pytest.raises(FormatError):
        read_it(empty)


@pytest.mark.parametrize("name", [n for n in READERS if (CORPUS / n).exists()])
@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes there")
def test_texts_come_through_pipes_and_names_of_any_bytes(name: str, tmp_path: Path) -> None:
    data, suffix = (CORPUS / name).read_bytes(), name[name.index(".") :]
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    writer.start()
    found = READERS[name](pipe)
    writer.join(10)
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe" + suffix.encode()))
    odd.write_bytes(data)
    again = READERS[name](odd)
    assert type(found) is type(again)
    if isinstance(found, FactorGraph):
        zeros = np.zeros(found.n_variables, np.int32)
        assert found.score(zeros) == again.score(zeros)
    elif isinstance(found, (dict, list)):
        assert found == again


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes there")
@pytest.mark.parametrize("header", [b"2 4 3\n", b""])
def test_rows_of_a_pipe_are_those_of_the_file(header: bytes, tmp_path: Path) -> None:
    """With and without a first line that says how many there are: it is read first, and a pipe is read once."""
    rows = header + b"0,2 0:1 3:0.5\n1 2:2\n"
    file, pipe = tmp_path / "rows.txt", tmp_path / "pipe.txt"
    file.write_bytes(rows)
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=(rows,), daemon=True).start()
    found, expected = (read_training(path, True, False, True) for path in (pipe, file))
    assert np.array_equal(found.data.rows.index, expected.data.rows.index)
    assert np.array_equal(found.data.labels.index, expected.data.labels.index)
    assert found.classes.tolist() == expected.classes.tolist() == [0, 1, 2]
    assert len(expected.data.rows.index) == 3


@pytest.mark.parametrize("name", ["words.conll", "words.conllu", "rows.svm", "rows.xml.txt"])
def test_what_is_no_text_is_refused(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / name, (CORPUS / name).read_bytes()
    for data, message in [
        (bytes(100), "a byte is zero: this is no text"), (text + b"\0", "a byte is zero: this is no text"),
        (gzip.compress(text), r"this is no text; a compressed file must end in \.gz, \.xz or \.bz2"),
        (text.decode().encode("utf-16"), "this is no text; this is UTF-16, save the file as UTF-8"),
    ]:  # fmt: skip
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            READERS[name](path)


def test_long_names_can_be_written(tmp_path: Path) -> None:
    """The name of the temporary file beside it is no longer than a name may be."""
    path = tmp_path / f"{'ä' * 125}.uai"
    graph = FactorGraph.grid((2, 2), np.ones((2, 2, 2)), Potts(0, -1))
    write(graph, path)
    assert read(path).score([0, 0, 0, 0]) == graph.score([0, 0, 0, 0])
    left = temporary_name(path)
    left = left.with_name(left.name.replace(f"-{os.getpid()}-", "-999999999-"))  # left by a process that is no more
    left.write_bytes(b"half")
    clear_leftovers(path)
    assert os.listdir(tmp_path) == [path.name]
