"""Every command with every file of the corpus under every extension: an answer or one clear sentence.

All pairs of file and extension are tried, each with some of the commands in turn, so that it takes only seconds.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from cli_support import run

from fginfer.formats import FORMATS

CORPUS = sorted(Path(__file__).parent.parent.joinpath("corpus").iterdir())
SMALL, WORDS, TWO = (str(CORPUS[0].with_name(name)) for name in ("small.uai", "words.conll", "two.MPE"))
EXTENSIONS = [
    *(e for known in FORMATS.values() for e in known.extensions),
    *("", ".gz", ".xz", ".uai.gz", ".npz.bz2", ".conll", ".conllu", ".svm", ".txt", ".MPE", ".evid", ".zzz"),
]
EACH = 2  # commands that a pair is tried with
DOCUMENTED = (0, 2, 3, 20)  # 4 is a failure of ours

# {} is the renamed file, {tagger} and {rows} are trained models, {out} is a name for what is written.
QUICK = ("--max-iter", "1", "--time-limit", "0.3", "--quiet")
COMMANDS: list[tuple[str, ...]] = [
    ("solve", "{}", "--time-limit", "0.2", "--quiet"),
    ("solve", "{}", "--k-best", "2", "--time-limit", "0.2", "--json", "--quiet"),
    ("solve", SMALL, "--start", "{}", "--quiet"),
    ("info", "{}", "--json"),
    ("info", SMALL, "--evidence", "{}"),
    ("marginals", "{}", "--json"),
    ("marginals", "{}", "--approximate", "--time-limit", "0.1"),
    ("marginals", "{}", "--max", "--time-limit", "0.1"),
    ("explain", "{}", "--time-limit", "0.3", "--quiet"),
    ("check", "{}", TWO),
    ("check", SMALL, "{}"),
    ("convert", "{}", "{out}.cfn"),
    ("convert", "{}", "{out}.h5", "--drop-cutoff"),
    ("train", "{}", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--model", "crf", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--model", "extreme", "-o", "{out}.fgx", *QUICK),
    ("train", "{}", "--task", "parse", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--task", "multilabel", "-o", "{out}.npz", *QUICK),
    ("train", WORDS, "--templates", "{}", "-o", "{out}.npz", *QUICK),
    ("predict", "{tagger}", "{}", "-o", "{out}.txt"),
    ("predict", "{rows}", "{}", "-o", "{out}.txt"),
    ("predict", "{}", WORDS, "-o", "{out}.txt"),
    ("evaluate", "{tagger}", "{}"),
    ("evaluate", "{}", WORDS, "--json"),
]


@pytest.fixture
def sources(tmp_path: Path, capsys: Any) -> list[Path]:
    """The corpus, and files that cannot be stored as text: models in binary form and trained ones."""
    names = ["small.npz", "small.h5", "tagger.npz", "rows.npz", "packed.gz"]
    assert run(capsys, "convert", SMALL, tmp_path / names[0])[0] == 0
    assert run(capsys, "convert", SMALL, tmp_path / names[1])[0] == 0
    assert run(capsys, "train", WORDS, "-o", tmp_path / names[2], *QUICK)[0] == 0
    rows = CORPUS[0].with_name("rows.svm")
    assert run(capsys, "train", rows, "--task", "multilabel", "-o", tmp_path / names[3], *QUICK)[0] == 0
    (tmp_path / names[4]).write_bytes(gzip.compress(Path(SMALL).read_bytes()))
    return [*CORPUS, *(tmp_path / name for name in names)]


def arguments(command: tuple[str, ...], path: Path, folder: Path) -> Iterator[str]:
    for word in command:
        yield word.format(path, tagger=folder / "tagger.npz", rows=folder / "rows.npz", out=folder / "out")


def test_every_file_under_every_extension(tmp_path: Path, sources: list[Path], capsys: Any) -> None:
    turn = count()
    for source, extension in product(sources, EXTENSIONS):
        path = tmp_path / f"x{extension}"
        shutil.copy(source, path)
        for _ in range(EACH):
            command = COMMANDS[next(turn) % len(COMMANDS)]
            code, _, err = run(capsys, *arguments(command, path, tmp_path))
            where = (source.name, extension, command, err)
            assert code in DOCUMENTED, where
            assert "Traceback" not in err, where
            assert code != 3 or err.count("\n") == 1, where  # one sentence
        path.unlink()
    assert next(turn) > len(sources) * len(EXTENSIONS)
