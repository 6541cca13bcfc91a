"""`fginfer train --task parse` and what is done with its models, from CoNLL-U to CoNLL-U."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fginfer.archives import write_arrays
from fginfer.cli import main
from fginfer.learn.data.readers import read_conllu

WORDS = {"D": ["the", "a"], "N": ["dog", "cat", "tree", "owl"], "V": ["sees", "likes"], "A": ["old", "big"]}


def sentence(rng) -> list[list[str]]:
    """Noun phrases around a verb: articles and adjectives hang on their noun, nouns on the verb, that on the root."""
    phrases = [["D", *["A"] * int(rng.integers(3)), "N"] for _ in range(2)]
    tags = [*phrases[0], "V", *phrases[1]]
    verb = len(phrases[0]) + 1
    heads = []
    for k, tag in enumerate(tags, 1):
        noun = len(phrases[0]) if k < verb else len(tags)
        heads.append(0 if tag == "V" else verb if tag == "N" else noun)
    return [
        [str(k), str(rng.choice(WORDS[t])), "_", t, t.lower(), "_", str(h), "dep", "_", "_"]
        for k, (t, h) in enumerate(zip(tags, heads, strict=True), 1)
    ]


def write(path, n: int, seed: int, change=None) -> None:
    rng = np.random.default_rng(seed)
    found = [sentence(rng) for _ in range(n)]
    if change is not None:
        change(found)
    text = "".join("# text\n" + "".join("\t".join(t) + "\n" for t in s) + "\n" for s in found)
    path.write_text(text, encoding="utf-8")


def run(*args) -> int:
    return main([str(a) for a in args])


def test_parser_from_file_to_file(tmp_path, capsys):
    train, test, model = tmp_path / "a.conllu", tmp_path / "b.conllu", tmp_path / "m.npz"
    write(train, 60, 0)
    write(test, 30, 1)
    assert run("train", train, "-o", model, "--task", "parse", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "converged"
    assert run("evaluate", model, test, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentences"] == 30
    assert found["attachment"] == 1.0
    assert found["whole_trees"] == 1.0
    out = tmp_path / "answers.conllu"
    assert run("predict", model, test, "-o", out) == 0
    truth, written = read_conllu(test), read_conllu(out)
    assert [[t[6] for t in s] for s in written] == [[t[6] for t in s] for s in truth]
    assert [[t[:6] for t in s] for s in written] == [[t[:6] for t in s] for s in truth]
    assert run("predict", model, test, "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers == [[t[6] for t in s] for s in truth]
    assert run("info", model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "parse"


def test_what_cannot_be_parsed_is_left_out(tmp_path, capsys):
    def crossing(found):
        for s in found[:5]:  # two arcs cross: the article hangs on the last noun, the root lies between
            s[0][6] = str(len(s))

    path = tmp_path / "a.conllu"
    write(path, 30, 2, crossing)
    assert run("train", path, "-o", tmp_path / "m.npz", "--task", "parse", "--longest", "7") == 0
    kept = sum(len(s) <= 7 for s in read_conllu(path)[5:])
    assert f"{kept} of 30 sentences are projective trees of up to 7 tokens" in capsys.readouterr().err
    assert 0 < kept < 25


def bad_head(found) -> None:
    found[3][1][6] = "twelve"


def far_head(found) -> None:
    found[3][1][6] = "99"


@pytest.mark.parametrize(
    ("more", "change", "message"),
    [
        (["--templates", "t"], None, "--templates does not go with --task parse"),
        (["--model", "crf"], None, "--model does not go with --task parse"),
        (["--label-column", "UPOS"], None, "--label-column does not go with --task parse"),
        (["--feature-columns", "FORM"], None, "two other columns"),
        (["--feature-columns", "FORM,HEAD"], None, "two other columns"),
        (["--feature-columns", "FORM,NONE"], None, "there is no column 'NONE'"),
        (["--longest", "2"], None, "no sentence is a projective tree"),
        (["--longest", "0"], None, "at least 1"),
        (["--solver", "gdmm"], None, "choices are trained with"),
        (["--C", "-1"], None, "C must be"),
        ([], bad_head, "sentence 4, token 2"),
        ([], far_head, "sentence 4, token 2"),
    ],
)
def test_bad_input_is_refused_before_training(tmp_path, capsys, more, change, message):
    path = tmp_path / "a.conllu"
    write(path, 10, 3, change)
    assert run("train", path, "-o", tmp_path / "m.npz", "--task", "parse", *more) == 3
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m.npz").exists()


def test_longest_is_for_parsers(tmp_path, capsys):
    path = tmp_path / "a.conllu"
    write(path, 5, 0)
    assert run("train", path, "-o", tmp_path / "m.npz", "--longest", "9") == 3
    assert "--longest belongs to --task parse" in capsys.readouterr().err


def test_parsers_have_no_probabilities_and_damage_is_noticed(tmp_path, capsys):
    path, model = tmp_path / "a.conllu", tmp_path / "m.npz"
    write(path, 10, 0)
    assert run("train", path, "-o", model, "--task", "parse", "--quiet", "--max-iter", "2") == 0
    assert run("predict", model, path, "--probabilities") == 3
    assert "probabilities" in capsys.readouterr().err
    with np.load(model) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["arc_tags"] = arrays["arc_tags"][:0]
    with open(model, "wb") as file:
        write_arrays(file, arrays)
    assert run("predict", model, path) == 3
    assert "not a model of `fginfer train`" in capsys.readouterr().err
