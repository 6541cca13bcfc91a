"""Checkpoints, models and texts that somebody made to do harm: each is refused for what is wrong with it."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer import FormatError, Result
from fginfer.archives import write_arrays
from fginfer.core.extreme import INFO, Lines
from fginfer.errors import DataError, ModelError, UnwritableError
from fginfer.extreme import ExtremeClassifier
from fginfer.extreme.reader import read_training
from fginfer.learn import EmbeddingClassifier, KernelStructuredSVM, SkipGram, StructuredSVM
from fginfer.learn.crf import ChainCRF, read_crfsuite, write_crfsuite
from fginfer.learn.data.features import WindowFeatures
from fginfer.learn.files.describe import describe
from fginfer.learn.files.load import load_file_model
from fginfer.learn.files.trained import FileModel
from fginfer.learn.files.treebank import ParseModel

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(4, 3)) for _ in range(6)]
Y = [(x[:, 0] > 0).astype(int) for x in X]
DENSE = np.abs(np.random.default_rng(1).normal(size=(20, 5)))


def rewritten(path: Path, **changes: Any) -> None:
    """The archive with other arrays in place of some; `header` is a dict that is put over the one there."""
    with np.load(path) as found:
        arrays = dict(found)
    if "header" in changes:
        header = json.loads(arrays["header"].tobytes()) | changes.pop("header")
        changes["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        write_arrays(file, arrays | changes)


RUNS = {
    "svm": lambda p, n: StructuredSVM(max_iter=n, tol=1e-9, checkpoint=p).fit(X, Y),
    "sgd": lambda p, n: ChainCRF(0.1, solver="sgd", max_iter=n, checkpoint=p).fit(X, Y),
    "words": lambda p, n: SkipGram(4, subsample=0, min_count=1, max_iter=n, checkpoint=p).fit(
        ["a dog", "the dog a cat"]
    ),
    "embedding": lambda p, n: EmbeddingClassifier(max_iter=n, checkpoint=p).fit(DENSE, DENSE.argmax(1)),
    "pd": lambda p, n: ExtremeClassifier("pd-sparse", lam=0.01, max_iter=n, tol=1e-9, checkpoint=p).fit(
        DENSE, DENSE.argmax(1)
    ),
}


def progress(**changes: Any) -> dict[str, Any]:
    return {"header": {"progress": {"passes": 2, "seconds": 0.1, "elapsed": 0.1, "gap": None, **changes}}}


# What is changed in the checkpoint of which run, and what the error says: a place before the first example is where the
# core would read what is not its own.
DAMAGED = [
    ("svm", progress(passes="2"), "passes must be a whole number"),
    ("svm", progress(seconds=-1), "seconds must be a number"),
    ("svm", progress(elapsed=[]), "elapsed must be a number"),
    ("svm", progress(gap="x"), "gap must be a number"),
    ("svm", progress(more=1), "progress must have the entries passes, seconds"),
    ("svm", {"header": {"progress": [1]}}, "progress must have the entries"),
    ("sgd", {"solver_place": np.array([2, -1])}, "place does not fit"),
    ("sgd", {"solver_place": np.array([2, 7])}, "place does not fit"),
    ("sgd", {"solver_place": np.array([2.0, 0.0])}, "place does not hold int64"),
    ("sgd", {"solver_reals": np.array([np.nan, 0.0])}, "reals holds what is no number"),
    ("words", {"solver_place": np.array([-1, 0, 0, 0, -5])}, "place does not fit"),
    ("words", {"solver_place": np.array([-1, 0, 0, 0, 10**9])}, "place does not fit"),
    ("words", {"solver_place": np.array([1, 1, 0, 0, 0])}, "the gradient of what is behind it"),
    ("words", {"solver_input": np.zeros((4, 3), np.float32)}, "input does not fit"),
    ("words", {"solver_input": np.zeros((4, 4))}, "input does not hold float32"),
    ("embedding", {"solver_place": np.array([1, -4, 0, 0])}, "place does not fit"),
    ("embedding", {"solver_place": np.array([1, 21, 0, 0])}, "place does not fit"),
    ("embedding", {"solver_rows": np.full((4, 6), np.inf, np.float32)}, "rows holds what is no number"),
    ("pd", {"order": np.full(20, 99, np.int32)}, "order does not fit"),
    ("pd", {"next": np.array([-1])}, "next does not fit"),
    ("pd", {"next": np.array([21])}, "place does not fit"),
]


@pytest.mark.parametrize(("run", "changes", "message"), DAMAGED)
def test_damaged_checkpoints_are_refused(run: str, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    RUNS[run](path, 2)
    RUNS[run](path, 3)  # as it is, it goes on
    rewritten(path, **dict(changes))
    with pytest.raises(FormatError, match=rf"run\.ckpt: damaged checkpoint \(.*{message}"):
        RUNS[run](path, 4)
    if "header" in changes:
        with pytest.raises(FormatError, match=rf"damaged checkpoint \(.*{message}"):
            describe(path)


@pytest.mark.parametrize("solver", ["proxqn", "owlqn", "bcd", "proxgrad"])
def test_optimisers_have_a_status_they_can_have(solver: str, tmp_path: Path) -> None:
    """Its state begins with the question that is open and with the status: running if there is one, else ended."""
    path = tmp_path / "run.ckpt"
    ChainCRF(0.1, solver=solver, max_iter=2, tol=1e-9, checkpoint=path).fit(X, Y)
    with np.load(path) as found:
        ints = found["solver_ints"]
    for ask, status in ((ints[0], 2), (0, 0), (1, 1), (ints[0], 6)):
        rewritten(path, solver_ints=np.r_[ask, status, ints[2:]])
        with pytest.raises(FormatError, match="the saved state does not fit this optimiser"):
            ChainCRF(0.1, solver=solver, max_iter=4, tol=1e-9, checkpoint=path).fit(X, Y)


def journal(path: Path, change: Any) -> None:
    """A checkpoint of ppd-sparse whose first record is changed, with the check sum that goes with it."""
    data = path.read_bytes()
    at = data.index(b"COLUMNS\0")
    n, nnz, _ = struct.unpack_from("<3Q", data, at + 8)
    sizes = [n * 4, (n + 1) * 8, nnz * 4, nnz * 4, n * 4, n * INFO.itemsize]
    cuts = np.cumsum([at + 32, *sizes]).tolist()
    parts = [bytearray(data[a:b]) for a, b in pairwise(cuts)]
    change(*parts)
    body = b"".join(parts)
    head = data[: at + 8] + struct.pack("<3Q", n, nnz, zlib.crc32(body))
    path.write_bytes(head + body + data[cuts[-1] :])


def put(place: int, kind: str, value: float) -> Any:
    return lambda part: struct.pack_into(kind, part, place, value)


@pytest.mark.parametrize(
    ("which", "change", "message"),
    [
        (0, put(0, "<i", 99), "a label is not from 0 to 3"),
        (0, put(0, "<i", -1), "a label is not from 0 to 3"),
        (1, put(8, "<q", 10**15), "columns of 1000000000000000 weights in a record of 5"),
        (2, put(0, "<i", 5), "index 5 is not between 0 and 4"),
        (3, put(0, "<f", np.nan), "is not finite"),
        (4, put(0, "<f", np.inf), "a bias is not finite"),
    ],
)
def test_a_journal_of_columns_is_looked_at(which: int, change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "columns.ckpt"
    labels = DENSE.argmax(1)
    before = ExtremeClassifier(lam=0.01, checkpoint=path).fit(DENSE, labels)
    again = ExtremeClassifier(lam=0.01, checkpoint=path).fit(DENSE, labels)
    assert np.array_equal(before.predict(DENSE), again.predict(DENSE))
    journal(path, lambda *parts: change(parts[which]))
    with pytest.raises(FormatError, match=message):
        ExtremeClassifier(lam=0.01, checkpoint=path).fit(DENSE, labels)


def test_lines_that_reach_beyond_the_last_are_not_read() -> None:
    index, value = np.zeros(2, np.int32), np.ones(2, np.float32)
    with pytest.raises(DataError, match="x: line 0 ends before it begins, or after the last one"):
        Lines(np.array([0, 10**15, 2]), index, value, 3).check("x")
    with pytest.raises(DataError, match="x: line 1 ends before it begins"):
        Lines(np.array([0, 2, 1, 2]), np.array([0, 1], np.int32), value, 3).check("x")


@pytest.mark.parametrize(
    "changes",
    [
        {"token_values": np.array([np.nan] * 9)},
        {"token_begin": np.array([0, -1, 6, 9], np.int32)},
        {"token_begin": np.array([0, 9, 6, 9], np.int32)},
        {"token_begin": np.array([0, 3, 6, 8], np.int32)},
        {"token_columns": np.array([[0, 1, 2]] * 3, np.int32)},
        {"token_values": np.array(["a"] * 9)},
    ],
)
def test_kernel_models_hold_finite_tokens(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "kernel.npz"
    KernelStructuredSVM(max_iter=2).fit([x[:1] for x in X[:3]], [y[:1] for y in Y[:2]] + [1 - Y[0][:1]]).save(path)
    KernelStructuredSVM.load(path)
    rewritten(path, **changes)
    with pytest.raises(FormatError, match=r"kernel\.npz: not a model of KernelStructuredSVM"):
        KernelStructuredSVM.load(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("score", "x"), ("status", "best"), ("iterations", 0.5), ("unit", None), ("threads", True), ("method", 3)],
)
def test_saved_results_have_the_types_they_should(field: str, value: Any, tmp_path: Path) -> None:
    import fginfer

    path = tmp_path / "r.npz"
    result = fginfer.solve(fginfer.FactorGraph.grid((2, 2), np.ones((2, 2, 2)), fginfer.Potts(0, -1)))
    result.save(path)
    assert Result.load(path).to_dict() == result.to_dict()
    with np.load(path) as found:
        arrays = dict(found)
    header = json.loads(arrays["result"].tobytes()) | {field: value}
    with open(path, "wb") as file:
        write_arrays(file, arrays | {"result": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(FormatError, match="not a saved result"):
        Result.load(path)
    for name, array in {"trace": arrays["trace"].reshape(1, -1), "labels": arrays["labels"].astype(float)}.items():
        with open(path, "wb") as file:
            write_arrays(file, arrays | {name: array})
        with pytest.raises(FormatError, match="not a saved result"):
            Result.load(path)


# ---- texts


def test_one_long_name_does_not_cost_the_room_of_all(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    names = [f"a{k}" for k in range(20_000)] + ["x" * 200_000]
    lines = "".join(f"  {k}: {name}\n" for k, name in enumerate(names))
    path.write_text(f"LABELS = {{\n  0: N\n  1: V\n}}\nATTRIBUTES = {{\n{lines}}}\n")
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"one of 20001 strings has 200000 characters, .* 16\.0 GB"):
        read_crfsuite(path)
    with pytest.raises(DataError, match=r"tokens: one of 20001 strings has 200000 characters"):
        WindowFeatures(["0[0]"]).fit([[[name] for name in names]])
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_a_line_of_arrows_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    arrows = " --> " * 200_000
    path.write_text(
        f"LABELS = {{\n  0: N\n  1: V\n}}\nATTRIBUTES = {{\n  0: a\n}}\nSTATE_FEATURES = {{\n  (0) a{arrows}N: 1\n}}\n"
    )
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"dump\.txt, line 9 at .*expected \(type\) name --> label: weight"):
        read_crfsuite(path)
    assert tracemalloc.get_traced_memory()[1] < 100e6  # all readings of it have 100 GB
    tracemalloc.stop()


def test_labels_of_a_header_are_short_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"2 3 4\n{'9' * 5000} 0:1\n1 1:1\n")
    with pytest.raises(FormatError, match="labels go from 0 to 3, as the header says"):
        read_training(path, True, False, True)


def test_weights_of_labels_that_are_not_there(tmp_path: Path) -> None:
    """Files are mapped, not read: whatever uses the weights looks at them first."""
    path = tmp_path / "m.fgx"
    model = ExtremeClassifier(lam=0.01).fit(DENSE, DENSE.argmax(1))
    model.save(path)
    assert (ExtremeClassifier.load(path).coef_ != model.coef_).nnz == 0
    data = bytearray(path.read_bytes())
    header = json.loads(data[16 : 16 + int.from_bytes(data[8:16], "little")])
    start = -(-(16 + int.from_bytes(data[8:16], "little")) // 64) * 64
    struct.pack_into("<i", data, start + header["arrays"]["label"]["at"], 10**9)
    path.write_bytes(data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little"))
    with pytest.raises(DataError, match="the weights: line 0: index 1000000000 is not between 0 and 3"):
        _ = ExtremeClassifier.load(path).coef_
    with pytest.raises(ModelError, match="damaged weights: there is one of a label that does not exist"):
        ExtremeClassifier.load(path).predict(DENSE)


def test_models_of_files_do_not_ask_for_billions_of_templates(tmp_path: Path) -> None:
    words, path = Path(__file__).parent.parent / "corpus" / "words.conll", tmp_path / "tagger.npz"
    model = FileModel.train(words, affixes=2, max_iter=2)
    model.save(path)
    assert load_file_model(path).predict_file(words)[1][0].tolist() == model.predict_file(words)[1][0].tolist()
    with np.load(path) as found:
        extra = json.loads(found["header"].tobytes())["file_model"]
    rewritten(path, header={"file_model": extra | {"features": extra["features"] | {"affixes": 2**31}}})
    with pytest.raises(FormatError, match="affixes must be at most 100, not 2147483648"):
        load_file_model(path)


def test_heads_are_short_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.conllu"
    row = "1\tdog\tdog\tNOUN\tNN\t_\t{}\troot\t_\t_\n\n"
    path.write_text(row.format("9" * 5000))
    with pytest.raises(FormatError, match="sentence 1, token 1: the head must be a number from 0 to 1"):
        ParseModel.train(path, bits=8)


def test_word_vectors_that_cannot_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    model = SkipGram(size=4, min_count=1, max_iter=1).fit([["New York", "a"], ["a", "b"]])
    with pytest.raises(DataError, match="'New York' is empty or has a blank"):
        model.save(path)
    assert not path.exists()
    model = SkipGram(size=4, min_count=1, max_iter=1).fit(["naïve a", "a b"])
    with pytest.raises(UnwritableError, match="cannot be written"):
        model.save(tmp_path / "none" / "x.vec")
    model.save(path)
    text = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))  # as editors of other systems keep it
    assert np.array_equal(SkipGram.load(path)["naïve"], model["naïve"])
    with pytest.raises(FileNotFoundError, match=r"none\.vec: there is no such file"):
        SkipGram.load(tmp_path / "none.vec")
    path.write_bytes(b"1 1\n\xff 1\n")
    with pytest.raises(FormatError, match="not UTF-8 text"):
        SkipGram.load(path)


def test_a_dump_that_finds_no_room_leaves_the_old_one(tmp_path: Path) -> None:
    crf = ChainCRF(0.1, max_iter=2).fit([[{"a": 1.0}], [{"b": 1.0}]], [["N"], ["V"]])
    path = tmp_path / "dump.txt"
    write_crfsuite(crf, path)
    before = path.read_bytes()
    assert read_crfsuite(path).predict([[{"a": 1.0}]])[0][0] == "N"
    with pytest.raises(UnwritableError, match="cannot be written"):
        write_crfsuite(crf, tmp_path / "none" / "dump.txt")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_crfsuite(tmp_path / "none.txt")
    path.write_bytes(b"\xef\xbb\xbf" + before)
    assert read_crfsuite(path).predict([[{"b": 1.0}]])[0][0] == "V"


def test_members_twice_and_names_of_other_places(tmp_path: Path) -> None:
    """A name that points out of an archive is a name and nothing else; a name twice is refused."""
    path = tmp_path / "m.npz"
    StructuredSVM(max_iter=2).fit(X, Y).save(path)
    with np.load(path) as found:
        arrays = dict(found)
    rewritten(path, **{"../outside": arrays["weights"]})
    assert len(StructuredSVM.load(path).predict(X[:1])[0]) == 4
    assert not (tmp_path.parent / "outside.npy").exists()
    with zipfile.ZipFile(path, "a") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("weights.npy", out.read("weights.npy"))
    with pytest.raises(FormatError, match="two members are called 'weights'"):
        StructuredSVM.load(path)
