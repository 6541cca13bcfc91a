"""svmlight and XMLRepo files: streamed, out of core, refused where they are wrong; and the commands on them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fginfer.cli import main
from fginfer.errors import FormatError
from fginfer.extreme import ExtremeClassifier, reader
from fginfer.extreme.reader import Reader, read_training

from .problems import random_problem, same_lines, same_model


def text_of(X, y, kind="svmlight"):
    first = 0 if kind == "xmlrepo" else 1
    lines = [f"{X.shape[0]} {X.shape[1]} 12"] if kind == "xmlrepo" else []
    for i, labels in enumerate(y):
        row = X[i]
        pairs = [f"{j + first}:{v!r}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)]
        lines.append(" ".join([",".join(map(str, labels)), *pairs]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ["svmlight", "xmlrepo"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_trains_the_model_of_its_matrix(tmp_path, kind, packed, monkeypatch):
    monkeypatch.setattr(reader, "BLOCK", 500)  # many blocks
    monkeypatch.setattr(reader, "BLOCK_SHARE", 1)
    X, y = random_problem(1)
    path = tmp_path / ("data.svm.gz" if packed else "data.svm")
    path.write_bytes(gzip.compress(text_of(X, y, kind).encode()) if packed else text_of(X, y, kind).encode())
    expected = ExtremeClassifier(classes=np.arange(12)).fit(X, y)
    for memory in (None, 64.0):
        found = read_training(path, False, True, True, memory)
        assert found.mapped == (memory is not None)
        assert np.array_equal(found.classes, np.arange(12))
        if memory is not None:
            whole = read_training(path, False, True, True).data
            assert same_lines(found.data.columns, whole.columns)
            assert isinstance(found.data.positives.index, np.memmap)
            assert np.array_equal(found.data.positives.index, whole.positives.index)
            assert np.array_equal(found.data.labels.index, whole.labels.index)
        model = ExtremeClassifier()
        model.multilabel_ = True
        model._fit_data(found.data, found.classes, 0.0)
        assert same_model(model.model_, expected.model_)


LIMITED = """
    import resource
    from fginfer.cli import main
    import fginfer.extreme, fginfer.extreme.trained, scipy.sparse, sklearn.base
    said = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    limit = int(said["VmData"].split()[0]) * 1024 + {megabytes} * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    raise SystemExit(main({command!r}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts mapped memory on Linux only")
def test_a_file_larger_than_memory_trains(tmp_path):
    """Two million values, 16 MB by row and 16 MB by column, in a process that may not take 24 MB more than it has."""
    rng, data = np.random.default_rng(0), tmp_path / "data.svm"
    n, each, width = 20_000, 100, 5000
    index = np.sort(rng.permuted(np.tile(np.arange(1, 401), (500, 1)), axis=1)[:, :each], axis=1)
    with open(data, "w") as file:
        for i in range(n):
            shift = 400 * (i % 12)
            file.write(f"{i % 12},{12 + i % 3} " + " ".join(f"{j + shift}:1" for j in index[i % 500]) + "\n")
    assert width > 400 * 12
    model = tmp_path / "model.fgx"
    command = ["train", str(data), "--model", "extreme", "-o", str(model), "--quiet", "--max-iter", "2"]

    def run(*more):
        code = textwrap.dedent(LIMITED.format(megabytes=24, command=[*command, *more]))
        return subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    short = run()
    assert short.returncode != 0  # all of it does not fit
    assert "emory" in short.stderr
    assert not model.exists()
    done = run("--memory", "4")
    assert done.returncode == 0, done.stderr
    assert ExtremeClassifier.load(model).n_trained_ == 15


def test_commands(tmp_path, capsys):
    X, y = random_problem(2, n=200, d=60, k=12, density=0.3)
    data, model, out = tmp_path / "data.svm", tmp_path / "model.fgx", tmp_path / "out.txt"
    data.write_text(text_of(X, y))
    train = ["train", str(data), "--model", "extreme", "-o", str(model), "--json", "--quiet"]
    train += ["--lam", "0.01", "--C", "1"]
    assert main([*train, "--memory", "0.001", "--checkpoint", str(tmp_path / "ckpt")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["status"] == "converged"
    assert facts["trained"] == facts["labels"] == 12
    assert facts["weights"] > 0
    assert main(["predict", str(model), str(data), "--top-k", "3", "-o", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 200
    expected = ExtremeClassifier(C=1.0, lam=0.01).fit(X, y).predict_topk(X, 3)[0]
    assert [[int(pair.split(":")[0]) for pair in line.split()] for line in lines] == expected.tolist()
    assert main(["predict", str(model), str(data), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["answers"][0]) == 5
    assert main(["evaluate", str(model), str(data), "--json"]) == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures == pytest.approx({"rows": 200, **ExtremeClassifier(C=1.0, lam=0.01).fit(X, y).evaluate(X, y)})


def test_text_labels_and_labels_never_seen(tmp_path, capsys):
    data, test, model = tmp_path / "a.svm", tmp_path / "b.svm", tmp_path / "m.fgx"
    data.write_text("red,warm 1:1\nblue 2:1\n1:0.5 2:0.5\nred 1:2\n")
    test.write_text("red 1:1 7:3\ngreen 2:1\n")
    assert main(["train", str(data), "--model", "extreme", "-o", str(model), "--quiet", "--lam", "0"]) == 0
    assert "3 of 3 labels" in capsys.readouterr().out
    assert main(["predict", str(model), str(test), "--top-k", "1"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["red", "blue"]
    assert main(["evaluate", str(model), str(test), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["p@1"] == 0.5


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 1:1\n2 0:1\n", 2, "begin at 1"),
        ("1 1:1\n2 3:1 2:1\n", 2, "ascend"),
        ("1 1:1\n2 3:1 3:1\n", 2, "ascend"),
        ("1 1:nan\n", 1, "not finite"),
        ("1 1:1\n2 1:1e308\n", 2, "larger than single precision holds"),
        ("1 1:1\n2 2:-4e38\n", 2, "larger than single precision holds"),
        ("1 1:1\n\n2 1:x\n", 3, "index:value"),
        ("1 a:1\n", 1, "index:value"),
        ("1 1:2:3\n", 1, "index:value"),
        ("the DT B-NP\ncat NN I-NP\n", 1, "index:value"),
        ("1 1.5:2\n", 1, "whole number"),
        ("1,1 1:2\n", 1, "twice"),
        ("3 2 2\n0 0:1\n1 1:1\n", 3, "2 rows, the header says 3"),
        ("1 2 2\n0 0:1\n1 1:1\n", 3, "more rows"),
        ("2 2 2\n0 0:1\n1 2:1\n", 3, "2 features"),
        ("2 2 2\n0 1:1\n1 2:1\n", 3, "begin at 1?"),
        ("2 2 2\n0 0:1\n2 1:1\n", 3, "labels go from 0 to 1"),
        ("2 2 2\n0 0:1\nx 1:1\n", 3, "labels go from 0 to 1"),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path, text, line, message):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_training(path, False, True, True)
    assert error.value.line == line


def test_a_header_that_claims_the_world(tmp_path):
    path = tmp_path / "large.txt"
    for header in ("1 2 2147483000", "1 2147483000 2"):
        path.write_text(f"{header}\n0 0:1\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader.os, "sysconf", lambda name: 4096 if "SIZE" in name else 1 << 21)  # 8 GB
            with pytest.raises(FormatError, match="more than fit into memory"):
                read_training(path, False, True, True)


def test_a_label_has_one_name(tmp_path):
    path = tmp_path / "zeros.svm"
    path.write_text("1 1:1\n01,2 2:1\n0 1:1\n")
    found = read_training(path, False, True, True)
    assert found.classes.tolist() == [0, 1, 2]
    path.write_text("1,01 1:1\n")
    with pytest.raises(FormatError, match="twice"):
        read_training(path, False, True, True)


def test_a_bad_row_leaves_older_answers_alone(tmp_path, capsys):
    data, model, out = tmp_path / "data.svm", tmp_path / "m.fgx", tmp_path / "out.txt"
    data.write_text("1 1:1\n2 2:1\n")
    assert main(["train", str(data), "--model", "extreme", "-o", str(model), "--quiet"]) == 0
    out.write_text("precious")
    data.write_text("1 1:1\n2 2:x\n")
    assert main(["predict", str(model), str(data), "-o", str(out)]) == 3
    assert "index:value" in capsys.readouterr().err
    assert out.read_text() == "precious"
    data.write_text("1 1:1\n")
    assert main(["predict", str(model), str(data), "-o", str(out), "--top-k", "1"]) == 0
    assert out.read_text().split(":")[0] == "1"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.svm", "m.fgx", "out.txt"]


def test_files_that_are_empty_missing_or_cut(tmp_path, capsys):
    path = tmp_path / "bad.svm.gz"
    with pytest.raises(FormatError, match="no such file"):
        Reader(path)
    path.write_bytes(gzip.compress(b"1 1:1\n" * 2000)[:-20])
    with pytest.raises(FormatError):
        list(Reader(path))
    plain = tmp_path / "empty.svm"
    plain.write_text("")
    with pytest.raises(FormatError, match="no rows"):
        read_training(plain, False, True, True)
    plain.write_text("1:1\n2:1\n")
    with pytest.raises(FormatError, match="no row has a label"):
        read_training(plain, False, True, True)
    kept = tmp_path / "model.fgx"
    kept.write_text("precious")
    assert main(["train", str(plain), "--model", "extreme", "-o", str(kept), "--quiet"]) == 3
    assert "label" in capsys.readouterr().err
    assert kept.read_text() == "precious"
