"""fginfer train, predict and evaluate on small files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fginfer.cli import main


def write_conll(path, n=40, seed=0):
    rng = np.random.default_rng(seed)
    words = {"DT": ["the", "a"], "NN": ["cat", "dog", "tree"], "VB": ["sat", "ran"]}
    tags = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}
    with open(path, "w") as file:
        for _ in range(n):
            for pos in ("DT", "NN", "VB") * int(rng.integers(1, 3)):
                file.write(f"{rng.choice(words[pos])} {pos} {tags[pos]}\n")
            file.write("\n")


def write_svmlight(path, n=60, seed=0):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for x in rng.normal(size=(n, 3)):
            labels = ",".join(name for name, value in zip(("5", "7", "11"), x, strict=True) if value > 0)
            file.write(f"{labels} " + " ".join(f"{k + 1}:{v:.4f}" for k, v in enumerate(x)) + "\n")


def run(capsys, *args):
    code = main([str(a) for a in args])
    return code, *capsys.readouterr()


def test_conll_from_file_to_file(tmp_path, capsys):
    write_conll(tmp_path / "train.txt")
    write_conll(tmp_path / "test.txt", seed=1)
    model = tmp_path / "m.npz"
    code, out, log = run(capsys, "train", tmp_path / "train.txt", "--output", model, "--json")
    assert code == 0
    assert json.loads(out)["status"] == "converged"
    assert "primal" in log
    code, out, _ = run(capsys, "evaluate", model, tmp_path / "test.txt", "--json")
    assert code == 0
    assert json.loads(out)["chunk_f1"] == 1.0
    code, out, _ = run(capsys, "predict", model, tmp_path / "test.txt")
    assert code == 0
    lines = [line.split() for line in out.splitlines() if line]
    assert all(len(line) == 4 and line[2] == line[3] for line in lines)
    (tmp_path / "bare.txt").write_text("the DT\ncat NN\n")
    code, out, _ = run(capsys, "predict", model, tmp_path / "bare.txt", "--output", tmp_path / "answer.txt")
    assert (tmp_path / "answer.txt").read_text() == "the DT B-NP\ncat NN I-NP\n"
    code, _, error = run(capsys, "evaluate", model, tmp_path / "bare.txt")
    assert code == 3
    assert "label column" in error


@pytest.mark.parametrize("solver", ["bcfw", "gdmm"])
def test_svmlight_from_file_to_file(tmp_path, capsys, solver):
    write_svmlight(tmp_path / "train.svm", n=150)
    write_svmlight(tmp_path / "test.svm", seed=1)
    model = tmp_path / "m.npz"
    args = ["--no-pairwise"] if solver == "bcfw" else ["--option", "greedy=4"]
    code, out, _ = run(
        capsys, "train", tmp_path / "train.svm", "-o", model, "--solver", solver, "--C", 1, "--quiet", *args
    )
    assert code == 0
    assert "passes" in out
    code, out, _ = run(capsys, "evaluate", model, tmp_path / "test.svm")
    assert code == 0
    assert "micro_f1" in out
    measures = json.loads(run(capsys, "evaluate", model, tmp_path / "test.svm", "--json")[1])
    assert measures["micro_f1"] > 0.9
    code, out, _ = run(capsys, "predict", model, tmp_path / "test.svm")
    assert len(out.splitlines()) == 60
    assert {label for line in out.splitlines() for label in line.split(",") if label} <= {"5", "7", "11"}


def test_templates_and_bad_input(tmp_path, capsys):
    write_conll(tmp_path / "train.txt")
    (tmp_path / "t").write_text("# tags\n1[0]\n1[-1]|1[0]\n")
    code, _, _ = run(
        capsys, "train", tmp_path / "train.txt", "-o", tmp_path / "m.npz", "--templates", tmp_path / "t", "--quiet",
        "--affixes", 2, "--min-count", 2,
    )  # fmt: skip
    assert code == 0
    for args in (
        ("train", tmp_path / "absent.txt", "-o", tmp_path / "x"),
        ("train", tmp_path / "train.txt", "-o", tmp_path / "x", "--solver", "newton"),
        ("train", tmp_path / "train.txt", "-o", tmp_path / "x", "--option", "speed=3"),
        ("train", tmp_path / "train.txt"),
        ("predict", tmp_path / "train.txt", tmp_path / "train.txt"),
        ("evaluate", tmp_path / "absent.npz", tmp_path / "train.txt"),
    ):
        code, _, error = run(capsys, *args)
        assert code == 3, args
        assert error
