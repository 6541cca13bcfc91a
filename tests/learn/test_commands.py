"""fginfer train, predict and evaluate on small files."""

from __future__ import annotations

import json
import re
import signal

import numpy as np
import pytest

from fginfer.cli import main, make_parser
from fginfer.learn.files import storage
from fginfer.learn.run.loop import _Run


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
    code, out, log = run(capsys, "train", tmp_path / "train.txt", "--output", model, "--json", "--max-iter", "200")
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


def test_every_option_is_explained_with_an_example(capsys):
    for command in ("train", "predict", "evaluate"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"fginfer {command} " in out.split("example", 1)[1]
        for action in next(iter(make_parser()._subparsers._group_actions)).choices[command]._actions:
            assert action.help, (command, action.dest)


def test_what_train_prints(tmp_path, capsys):
    write_conll(tmp_path / "train.txt")
    args = ("train", tmp_path / "train.txt", "-o", tmp_path / "m.npz", "--max-iter", 3, "--tol", 0)
    code, out, log = run(capsys, *args, "--json", "--trace", "--threads", 2, "--batch-size", 8, "--solver", "ssg")
    data = json.loads(out)
    assert code == 0
    assert (data["status"], data["passes"], data["solver"]) == ("iteration_limit", 3, "ssg")
    assert data["dual"] is None
    assert data["gap"] is None
    assert data["trace"][-1]["primal"] == data["primal"]
    assert data["oracle_calls"] == 3 * 40
    assert "examples" in log
    assert "iteration limit · 3 passes" in log
    code, out, log = run(capsys, *args, "--quiet")
    assert (code, log) == (0, "")
    assert out.count("\n") == 1


def test_ctrl_c_saves_what_was_learned(tmp_path, capsys, monkeypatch):
    write_conll(tmp_path / "train.txt")
    record, times = _Run.record, []

    def pressed(self, measured):
        if self.done.passes == 2 and not times:
            times.append(self.done.seconds)
            signal.raise_signal(signal.SIGTERM)
        return record(self, measured)

    monkeypatch.setattr(_Run, "record", pressed)
    args = ("train", tmp_path / "train.txt", "-o", tmp_path / "m.npz", "--json", "--checkpoint", tmp_path / "c.npz")
    code, out, log = run(capsys, *args, "--tol", 0)
    assert code == 2
    assert json.loads(out)["status"] == "interrupted"
    assert "interrupted: what was learned until then is kept" in log
    monkeypatch.undo()
    _, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "train.txt", "--json")
    assert json.loads(out)["accuracy"] > 0.9
    code, out, _ = run(capsys, *args, "--tol", 0, "--max-iter", 5)
    assert (code, json.loads(out)["passes"]) == (0, 5)


def test_measures_are_printed_as_measures(tmp_path, capsys):
    write_conll(tmp_path / "train.txt")
    run(capsys, "train", tmp_path / "train.txt", "-o", tmp_path / "m.npz", "--quiet")
    _, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "train.txt")
    assert out.split() == [
        "sentences",
        "40",
        "tokens",
        out.split()[3],
        "accuracy",
        "100.00",
        "%",
        "chunk_f1",
        "100.00",
        "%",
    ]
    _, out, _ = run(capsys, "predict", tmp_path / "m.npz", tmp_path / "train.txt", "--json")
    assert len(json.loads(out)["answers"]) == 40
    assert set(json.loads(out)["answers"][0]) <= {"B-NP", "I-NP", "B-VP"}


BAD_FILES = {
    "columns": ("train {0}/ragged.txt -o {0}/x", "ragged.txt, line 3 at 'sat': 2 columns"),
    "one_column": ("train {0}/words.txt -o {0}/x", "label"),
    "one_class": ("train {0}/oneclass.txt -o {0}/x", "one class"),
    "value": ("train {0}/bad.svm -o {0}/x", "bad.svm, line 2 at '3:x'"),
    "empty": ("train {0}/empty.svm -o {0}/x", "no examples"),
    "gzip": ("train {0}/text.txt.gz -o {0}/x", "text.txt.gz"),
    "folder": ("train {0}/train.txt -o {0}/no/such/m.npz", "cannot be written"),
    "template": ("train {0}/train.txt -o {0}/x --templates {0}/wrong", "expected column"),
    "template_column": ("train {0}/train.txt -o {0}/x --templates {0}/far", "uses? 10 columns"),
    "no_template": ("train {0}/train.txt -o {0}/x --templates {0}/empty.svm", "no templates"),
    "binary_template": ("train {0}/train.txt -o {0}/x --templates {0}/binary", "binary"),
    "affixes": ("train {0}/good.svm -o {0}/x --affixes 2", "affixes"),
    "rare": ("train {0}/train.txt -o {0}/x --min-count 9999", "9999 times"),
    "C": ("train {0}/train.txt -o {0}/x --C -1", "C must be positive"),
    "threads": ("train {0}/train.txt -o {0}/x --threads 0", "n_jobs"),
    "seed": ("train {0}/train.txt -o {0}/x --seed -1", "random_state"),
    "option": ("train {0}/train.txt -o {0}/x --option speed", "NAME=VALUE"),
    "not_a_model": ("predict {0}/train.txt {0}/train.txt", "train.txt: not a learned model"),
    "other_columns": ("predict {0}/m.npz {0}/four.txt", "four.txt: the model needs 2 columns"),
    "unlabelled": ("evaluate {0}/m.npz {0}/two.txt", "two.txt: the file has no label column"),
    "absent": ("predict {0}/m.npz {0}/absent.txt", "absent.txt: there is no such file"),
    "other_checkpoint": ("train {0}/train.txt -o {0}/x --checkpoint {0}/m.npz", "m.npz: this is no checkpoint"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_conll(folder / "train.txt")
    assert main(["train", str(folder / "train.txt"), "-o", str(folder / "m.npz"), "--quiet", "--max-iter", "1"]) == 0
    for name, text in (
        ("ragged.txt", "the DT B-NP\ncat NN I-NP\nsat VB\n"), ("words.txt", "the\ncat\n"), ("good.svm", "1 1:1\n"),
        ("oneclass.txt", "the O\ncat O\n"), ("bad.svm", "1 1:1\n2 3:x\n"), ("empty.svm", "\n"), ("text.txt.gz", "text"),
        ("wrong", "word[0]\n"), ("far", "9[0]\n"), ("four.txt", "a b c d\n"), ("two.txt", "the DT\n"),
    ):  # fmt: skip
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(b"\xff\xfe\x00\x80")
    return folder


@pytest.mark.parametrize("case", BAD_FILES)
def test_errors_name_the_file_and_the_line(folder, capsys, case):
    command, message = BAD_FILES[case]
    capsys.readouterr()
    code, out, error = run(capsys, *command.format(folder).split(), *(["--quiet"] if command[:5] == "train" else []))
    assert code == 3
    assert out == ""
    assert re.search(message, error), error
    assert error.count("\n") == 1
    assert not (folder / "x").exists()


def test_label_sets_with_interactions_are_trained_with_a_gap(tmp_path, capsys):
    write_svmlight(tmp_path / "train.svm")
    args = ("train", tmp_path / "train.svm", "-o", tmp_path / "m.npz", "--json", "--quiet")
    _, out, _ = run(capsys, *args)
    assert json.loads(out)["solver"] == "gdmm"
    assert json.loads(out)["gap"] is not None
    _, out, _ = run(capsys, *args, "--no-pairwise")
    assert json.loads(out)["solver"] == "bcfw"


def test_files_whose_indices_begin_at_0(tmp_path, capsys):
    write_svmlight(tmp_path / "one.svm")
    text = re.sub(r"(\d+):", lambda m: f"{int(m[1]) - 1}:", (tmp_path / "one.svm").read_text())
    (tmp_path / "zero.svm").write_text(text)
    for name, args in (("one", []), ("zero", ["--zero-based"])):
        path, model = tmp_path / f"{name}.svm", tmp_path / f"{name}.npz"
        assert run(capsys, "train", path, "-o", model, "--quiet", "--C", 1, *args)[0] == 0
    answers = [run(capsys, "predict", tmp_path / f"{n}.npz", tmp_path / f"{n}.svm")[1] for n in ("one", "zero")]
    assert answers[0] == answers[1]
    code, _, error = run(capsys, "train", tmp_path / "zero.svm", "-o", tmp_path / "x")
    assert (code, "line 1 at '0:" in error) == (3, True)


def test_damaged_models_of_files(folder, tmp_path, capsys):
    header, arrays = storage.read(folder / "m.npz")
    for change in (
        {"columns": "2"}, {"format": "csv"}, {"format": "svmlight"}, {"features": None}, {"features": {}},
        {"features": {**header["file_model"]["features"], "templates": ["0[0]"]}},
        {"features": {**header["file_model"]["features"], "affixes": 3}},
    ):  # fmt: skip
        storage.write(tmp_path / "m.npz", {**header, "file_model": {**header["file_model"], **change}}, arrays)
        code, _, error = run(capsys, "predict", tmp_path / "m.npz", folder / "two.txt")
        assert (code, "not a model of `fginfer train`" in error) == (3, True), (change, error)
    for name in arrays:
        storage.write(tmp_path / "m.npz", header, {**arrays, name: np.zeros((2, 2))})
        code, _, error = run(capsys, "predict", tmp_path / "m.npz", folder / "two.txt")
        assert code == 3, name


def write_conllu(path, n=40, seed=0):
    rng = np.random.default_rng(seed)
    words = {"DET": ["the", "a"], "NOUN": ["cat", "dog", "tree"], "VERB": ["sat", "ran"]}
    with open(path, "w") as file:
        for _ in range(n):
            file.write("# text = something\n")
            for k, tag in enumerate(("DET", "NOUN", "VERB")):
                word = rng.choice(words[tag])
                file.write("\t".join([str(k + 1), word, word, tag, tag[0], "_", "0", "x", "_", f"M={k}"]) + "\n")
            file.write("\n")


@pytest.mark.parametrize(("more", "label"), [((), 3), (("--label-column", "XPOS", "--feature-columns", "1,UPOS"), 4)])
def test_a_treebank_is_tagged_by_its_words(tmp_path, capsys, more, label):
    write_conllu(tmp_path / "a.conllu")
    write_conllu(tmp_path / "b.conllu", seed=1)
    code, _, _ = run(capsys, "train", tmp_path / "a.conllu", "--output", tmp_path / "m.npz", "--quiet", *more)
    assert code == 0
    code, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "b.conllu", "--json")
    assert json.loads(out)["accuracy"] == 1.0
    _, out, _ = run(capsys, "predict", tmp_path / "m.npz", tmp_path / "b.conllu", "--json")
    tags = {3: ["DET", "NOUN", "VERB"], 4: ["D", "N", "V"]}[label]
    assert json.loads(out)["answers"][0] == tags
    blank = (tmp_path / "b.conllu").read_text().splitlines()
    cells = [line.split("\t") for line in blank]
    (tmp_path / "c.conllu").write_text(
        "".join("\t".join([*c[:label], "_", *c[label + 1 :]] if len(c) == 10 else c) + "\n" for c in cells)
    )
    _, out, _ = run(capsys, "predict", tmp_path / "m.npz", tmp_path / "c.conllu")
    assert out.splitlines() == [line for line in blank if not line.startswith("#")]


def test_the_label_may_be_any_column(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("N cat\nV ran\n\nN dog\nV sat\n\n" * 10)
    assert run(capsys, "train", tmp_path / "a.txt", "-o", tmp_path / "m.npz", "--label-column", "0", "--quiet")[0] == 0
    code, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "a.txt", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--label-column", "7"), "no column '7'"), (("--label-column", "tag"), "no column 'tag'"),
        (("--feature-columns", ""), "no column ''"),
        (("--feature-columns", "2"), "the label is none of them"), (("--task", "multilabel"), "does not go with"),
    ],
)  # fmt: skip
def test_columns_that_are_not_there(tmp_path, capsys, more, message):
    write_conll(tmp_path / "a.txt")
    code, _, err = run(capsys, "train", tmp_path / "a.txt", "-o", tmp_path / "m.npz", "--quiet", *more)
    assert code == 3
    assert message in err
    assert not (tmp_path / "m.npz").exists()


def test_one_label_a_line_is_multiclass(tmp_path, capsys):
    rng = np.random.default_rng(0)
    with open(tmp_path / "a.svm", "w") as file:
        for x in rng.normal(size=(80, 3)):
            file.write(f"c{x.argmax()} " + " ".join(f"{k + 1}:{v:.4f}" for k, v in enumerate(x)) + "\n")
    command = ("train", tmp_path / "a.svm", "-o", tmp_path / "m.npz", "--C", "10", "--quiet", "--max-iter", "100")
    assert run(capsys, *command)[0] == 0
    _, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "a.svm", "--json")
    assert json.loads(out)["accuracy"] > 0.95
    assert set(json.loads(out)) == {"examples", "accuracy"}
    (tmp_path / "b.svm").write_text("c0,c1 1:1\n")
    assert "one label in every line" in run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "b.svm")[2]
    assert run(capsys, *command, "--task", "multilabel")[0] == 0
    _, out, _ = run(capsys, "evaluate", tmp_path / "m.npz", tmp_path / "a.svm", "--json")
    assert "micro_f1" in json.loads(out)
