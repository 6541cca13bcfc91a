"""CoNLL and svmlight files, window features, measures."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn.data.features import WindowFeatures, default_templates, parse_template, shape
from fginfer.learn.data.readers import read_conll, read_conllu, read_svmlight
from fginfer.learn.files import storage
from fginfer.learn.metrics import chunk_f1, chunks, exact_match, micro_f1

CONLL = "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n\n\nIt PRP B-NP\nran VBD B-VP\n"


def test_conll_files(tmp_path):
    (tmp_path / "a.txt").write_text("# a comment of some words\n" + CONLL)
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8-sig") as file:  # with a byte order mark
        file.write(CONLL.replace("\n", "\r\n"))
    sentences = read_conll(tmp_path / "a.txt")
    assert sentences == read_conll(tmp_path / "a.txt.gz")
    assert [len(s) for s in sentences] == [3, 2]
    assert sentences[0][0] == ["The", "DT", "B-NP"]
    assert sentences[1][0] == ["It", "PRP", "B-NP"]


def test_tokens_that_look_like_something_else(tmp_path):
    """The pound sign of CoNLL-2000 is a token, wherever it stands; spaces that are not ASCII are part of a token."""
    (tmp_path / "a.txt").write_text("-DOCSTART- X O\n\n# # B-NP\n5 CD I-NP\n\nabout IN B-PP\n# # B-NP\na\u00a0b NN O\n")
    sentences = read_conll(tmp_path / "a.txt")
    assert [[t[0] for t in s] for s in sentences] == [["#", "5"], ["about", "#", "a\u00a0b"]]


DAMAGED = {
    "ragged": (b"a b c\nd e\n", r"line 2 at 'd': 2 columns"),
    "empty": (b"", "no sentences"),
    "blank": (b"\n \n", "no sentences"),
    "comments": (b"# a\n# b\n", "no sentences"),
    "binary": (b"a b\n\xff\xfe\x00\n", "line 2: a byte is zero"),
    "another coding": (b"a b\n\xff\xfe\n", "UTF-8"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_conll_files(tmp_path, case):
    content, message = DAMAGED[case]
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_conll(tmp_path / "bad.txt")
    with pytest.raises(FormatError, match=r"bad\.txt"):
        read_conll(tmp_path / "bad.txt")


def test_files_that_cannot_be_read(tmp_path):
    whole = gzip.compress(CONLL.encode() * 50)
    for name, content in (
        ("cut", whole[: len(whole) // 2]),
        ("text", b"a b\n"),
        ("bits", whole[:20] + b"xxxxxxxxxxxxxxx"),
    ):
        path = tmp_path / f"{name}.txt.gz"
        path.write_bytes(content)
        for read in (read_conll, read_svmlight, read_conllu):
            with pytest.raises(FormatError, match=name):
                read(path)
    for path in (tmp_path / "absent.txt", tmp_path):
        with pytest.raises(FormatError):
            read_conll(path)


def test_conllu_files(tmp_path):
    line = "\t".join(["{}", "w", "l", "NOUN", "NN", "_", "{}", "dep", "_", "_"])
    rows = [("1-2", 0), (1, 2), (2, 0), ("2.1", 0)]
    path = tmp_path / "u.conllu"
    path.write_text("# text\n" + "\n".join(line.format(*r) for r in rows) + "\n\n")
    assert [[t[6] for t in s] for s in read_conllu(path)] == [["2", "0"]]
    for text, message in (("", "no sentences"), ("1\tw\n", "line 1 at '1': 2 col"), (line.format("x", 0), "at 'x'")):
        path.write_text(text)
        with pytest.raises(FormatError, match=message):
            read_conllu(path)


def test_svmlight_files(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"\xef\xbb\xbf1,3 1:0.5 4:2\r\n\n# all of it\n2:1 # no label\n7 3:1e3 1:-0\n8\n")
    X, labels = read_svmlight(path)
    assert labels == [["1", "3"], [], ["7"], ["8"]]
    assert X.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1, 0, 0], [0, 0, 1000, 0], [0, 0, 0, 0]]
    assert read_svmlight(path, n_features=2)[0].shape == (4, 2)
    assert read_svmlight(path, zero_based=True)[0].shape == (4, 5)


@pytest.mark.parametrize(
    ("field", "message"),
    [("0:1", "zero-based"), ("2:x", "index:value"), ("2:nan", "finite"), ("2:inf", "finite"), ("1:1 2:1 1:2", "twice"),
     ("qid:3", "index:value"), ("1:2:3", "index:value"), ("1", "index:value"), ("-1:1", "index:value"),
     ("1_0:1", "index:value"), ("1:1_0", "index:value"), ("99999999999999999999999:1", "too large"), ("²:1", "index")],
)  # fmt: skip
def test_damaged_svmlight_files(tmp_path, field, message):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1\n1 {field}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=message) as error:
        read_svmlight(path)
    assert error.value.line == 2
    assert error.value.token == field.split()[-1]


def test_window_features_see_what_the_templates_say(tmp_path):
    (tmp_path / "a.txt").write_text(CONLL)
    sentences = read_conll(tmp_path / "a.txt")
    features = WindowFeatures(["0[0]", "1[-1]", "0[-1]|1[0]"]).fit(sentences)
    X, begin = features.transform(sentences)
    assert begin.tolist() == [0, 3, 5]
    assert (np.asarray(X.sum(axis=1)).ravel() == 3).all()
    # words: 5 different; tag before: none, DT, NN, PRP; word before with tag: all 5 tokens differ
    assert X.shape == (5, 5 + 4 + 5)
    assert X[0].indices.tolist() != X[3].indices.tolist()
    new, _ = features.transform([[["unseen", "DT"], ["cat", "XX"]]])
    assert new[0].nnz == 2  # nothing before, alone and with DT; the word is unknown
    assert new[1].nnz == 2  # the word, the tag before; the joint feature has an unknown part
    header, arrays = features.export()
    storage.write(tmp_path / "f.npz", header, arrays)
    again = WindowFeatures.restore(*storage.read(tmp_path / "f.npz"))
    assert (again.transform(sentences)[0] != X).nnz == 0
    rare = WindowFeatures(["1[0]"], min_count=2).fit(sentences).transform(sentences)[0]
    assert rare.shape[1] == 1  # only VBD is seen twice


def test_affixes_and_shapes():
    assert shape("McDonald's") == "XxXx-x"
    assert shape("U.S.-2019") == "X-X-9"
    features = WindowFeatures(["0[0]"], affixes=2).fit([[["walked"], ["talked"]]])
    X, _ = features.transform([[["walked"], ["talked"]]])
    assert X.shape[1] == 2 + 1 + 2 + 1 + 2 + 1  # words, last letter, first letter, last two, first two, shape


def test_bad_templates_and_tokens():
    assert parse_template("0[-1]|1") == ((0, -1), (1, 0))
    assert len(default_templates(2)) == 19
    assert len(default_templates(1)) == 7
    with pytest.raises(SettingsError, match="column"):
        parse_template("word")
    with pytest.raises(SettingsError, match="from 0"):
        parse_template("-1[0]")
    for bad in ({"templates": []}, {"templates": ["0"], "min_count": 0}, {"templates": ["0"], "affixes": -1}):
        with pytest.raises(SettingsError, match="must"):
            WindowFeatures(**bad)
    with pytest.raises(DataError, match="columns"):
        WindowFeatures(["3[0]"]).fit([[["a", "b"]]])
    with pytest.raises(DataError, match="seen 2 times"):
        WindowFeatures(["0[0]"], min_count=2).fit([[["a"], ["b"]]])
    with pytest.raises(SettingsError, match="fit"):
        WindowFeatures(["0[0]"]).transform([[["a"]]])


def test_measures():
    assert chunks(["B-NP", "I-NP", "O", "I-VP", "B-VP"]) == {(0, 1, "NP"), (3, 3, "VP"), (4, 4, "VP")}
    assert chunks(["I-NP", "I-VP"]) == {(0, 0, "NP"), (1, 1, "VP")}
    truth, answer = [["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]]
    assert chunk_f1(truth, answer) == pytest.approx(2 / 3)
    z, y = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[1, 0, 0], [0, 1, 0]])
    assert micro_f1(z, y) == pytest.approx(0.8)
    assert exact_match(z, y) == 0.5
