"""Disks that are full, pipes and devices: nothing is lost, nothing is replaced that is no file."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cli_support import grid, run

from fginfer import replacing as replacing_module
from fginfer.replacing import replacing

pytest.importorskip("sklearn")
CORPUS = Path(__file__).parent.parent / "corpus"
posix = pytest.mark.skipif(os.name != "posix", reason="pipes have names there")
QUICK = ("--max-iter", 2, "--quiet")


def through_pipe(path: Path, write: Any) -> bytes:
    """What arrives at the other end of a named pipe, which must still be one afterwards."""
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write()
    reader.join(20)
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    return read[0]


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    def write() -> None:
        with replacing(tmp_path / "pipe", durable=True) as stream:
            stream.write(b"text")

    assert through_pipe(tmp_path / "pipe", write) == b"text"


@posix
@pytest.mark.parametrize(
    "command",
    [
        ("train", CORPUS / "words.conll", *QUICK),
        ("train", CORPUS / "rows.svm", "--model", "extreme", *QUICK),
        ("predict", "{tagger}", CORPUS / "words.conll"),
        ("predict", "{rows}", CORPUS / "rows.svm"),
    ],
)
def test_commands_write_into_pipes(tmp_path: Path, capsys: Any, command: tuple[Any, ...]) -> None:
    run(capsys, "train", CORPUS / "words.conll", "-o", tmp_path / "tagger", *QUICK)
    run(capsys, "train", CORPUS / "rows.svm", "--model", "extreme", "-o", tmp_path / "rows", *QUICK)
    words = [str(word).format(tagger=tmp_path / "tagger", rows=tmp_path / "rows") for word in command]
    assert run(capsys, *words, "-o", tmp_path / "plain")[0] == 0
    arrived = through_pipe(tmp_path / "pipe", lambda: run(capsys, *words, "-o", tmp_path / "pipe"))
    assert len(arrived) > 0
    if command[0] == "predict":
        assert arrived == (tmp_path / "plain").read_bytes()


def fill_disk(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """From now on no file in this folder can be finished."""
    rename = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).parent == folder:
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(replacing_module.os, "replace", full)


@pytest.mark.parametrize(
    "kind", [(CORPUS / "words.conll",), (CORPUS / "rows.svm", "--model", "extreme")], ids=["svm", "extreme"]
)
def test_a_trained_model_is_written_elsewhere(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, kind: tuple[Any, ...]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "other").mkdir()
    fill_disk(monkeypatch, tmp_path / "full")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
    code, _, err = run(capsys, "train", *kind, "-o", tmp_path / "full" / "model.npz", *QUICK)
    assert code == 4
    assert "cannot be written (No space left on device); the model is in" in err
    assert list((tmp_path / "full").iterdir()) == []
    (rescued,) = (tmp_path / "other").rglob("model.npz")
    assert run(capsys, "predict", rescued, kind[0])[0] == 0


def test_no_space_is_no_bad_input(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grid(tmp_path / "g.uai")
    (tmp_path / "full").mkdir()
    fill_disk(monkeypatch, tmp_path / "full")
    code, _, err = run(capsys, "convert", tmp_path / "g.uai", tmp_path / "full" / "g.npz")
    assert (code, list((tmp_path / "full").iterdir())) == (4, [])
    assert "No space left on device" in err


@pytest.mark.skipif(sys.platform == "win32", reason="folders there have no such rights")
@pytest.mark.parametrize("command", ["train", "predict"])
def test_an_unwritable_place_is_noticed_before_the_work(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run(capsys, "train", CORPUS / "words.conll", "-o", tmp_path / "tagger", *QUICK)
    began = pytest.fail
    monkeypatch.setattr("fginfer.commands.train._train", lambda *_: began("it began"))
    monkeypatch.setattr("fginfer.learn.files.load.load_file_model", lambda *_: began("it began"))
    first = [tmp_path / "tagger"] if command == "predict" else []
    code, _, err = run(capsys, command, *first, CORPUS / "words.conll", "-o", tmp_path / "missing" / "x")
    assert code == 3
    assert "cannot be written" in err


@pytest.mark.parametrize(
    "command",
    [
        ("marginals", "{model}", "-o"),
        ("marginals", "{model}", "--pr"),
        ("sample", "{model}", "-n", 3, "-o"),
        ("predict", "{tagger}", CORPUS / "words.conll", "-o"),
    ],
    ids=lambda command: " ".join(map(str, command[:1])),
)
def test_an_answer_that_fits_into_no_file_is_printed(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: tuple[Any, ...]
) -> None:
    grid(tmp_path / "g.uai")
    run(capsys, "train", CORPUS / "words.conll", "-o", tmp_path / "tagger", *QUICK)
    words = [str(word).format(model=tmp_path / "g.uai", tagger=tmp_path / "tagger") for word in command]
    (tmp_path / "full").mkdir()
    assert run(capsys, *words, tmp_path / "there")[0] == 0
    fill_disk(monkeypatch, tmp_path / "full")
    code, out, err = run(capsys, *words, tmp_path / "full" / "answer")
    assert code == 4
    assert "cannot be written (No space left on device); the answer follows" in err
    assert out.strip("\n") == (tmp_path / "there").read_text().strip("\n")
    assert list((tmp_path / "full").iterdir()) == []
