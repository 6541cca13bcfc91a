"""Every reader of the package with files to begin with: for tests (some damage) and bench (much of it)."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from damage import (
    damaged_arrays,
    damaged_datasets,
    damaged_journal,
    damaged_mapped,
    damaged_packed,
    damaged_text,
    spliced,
)

import fginfer
from fginfer import FactorGraph, FginferError, Potts, Result
from fginfer.formats import read_evidence, read_solution

HERE = Path(__file__).parent


class Reader(NamedTuple):
    """Seeds, what reads such a file, and what damages more than bytes."""

    seeds: list[bytes]
    suffix: str
    read: Callable[[Path], object]
    damage: Callable[[bytes, random.Random], bytes] | None = None


def _seeds(*patterns: str) -> list[bytes]:
    found = [p.read_bytes() for pattern in patterns for p in sorted((HERE / "corpus").glob(pattern))]
    return found + [
        p.read_bytes() for pattern in patterns for p in sorted((HERE.parent / "models").glob(pattern))
        if p.stat().st_size < 5_000
    ]  # fmt: skip


def _written(write: Callable[[Path], Any], folder: Path, name: str) -> bytes:
    write(folder / name)
    return (folder / name).read_bytes()


def _used(path: Path, threads: int = 1, format: str | None = None) -> float:
    """The score of the first labels of a model that could be read: a number or -inf."""
    graph = fginfer.read(path, format=format, threads=threads)
    score = graph.score(np.zeros(graph.n_variables, np.int32)) if graph.n_variables < 10_000 else 0.0
    assert score < np.inf
    return score


def model_readers(folder: Path) -> dict[str, Reader]:
    """Readers of models, evidence, solutions and results; a model that is read is scored."""
    three = FactorGraph([3, 3, 3])
    mixed = FactorGraph.grid((2, 3), np.ones((2, 3, 4)), Potts(0, -1))
    mixed.add_factor([0, 1, 2], np.arange(64.0).reshape(4, 4, 4), weight=0.5)
    result = fginfer.solve(mixed, "gdmm")
    archive, hdf = (_written(lambda p: fginfer.write(mixed, p), folder, name) for name in ("m.npz", "m.h5"))
    return {
        "uai": Reader(_seeds("*.uai"), ".uai", _used),
        "uai-packed": Reader(
            [gzip.compress(seed, mtime=0) for seed in _seeds("*.uai")],
            ".uai.gz",
            partial(_used, threads=3),
            damaged_packed,
        ),
        "lg": Reader(_seeds("*.LG"), ".LG", _used),
        "wcsp": Reader(_seeds("*.wcsp"), ".wcsp", _used),
        "cfn": Reader(_seeds("*.cfn"), ".cfn", _used),
        "npz": Reader([archive], ".npz", _used),
        "npz-arrays": Reader([archive], ".npz", _used, damaged_arrays),
        "h5": Reader([hdf], ".h5", _used),
        "h5-datasets": Reader([hdf], ".h5", _used, damaged_datasets),
        **{
            name: Reader(_seeds(f"*{suffix}"), suffix, _used)
            for name, suffix in (("rudy", ".rud"), ("biqmac", ".sparse"), ("qubo", ".qubo"))
        },
        **{
            name: Reader(_seeds(f"*.{name}"), f".{name}", _used)
            for name in ("bif", "xmlbif", "cnf", "wcnf", "opb", "wbo", "qplib", "dd", "fg", "lp", "mps")
        },
        "qaplib": Reader(_seeds("*.dat"), ".dat", partial(_used, format="qaplib")),
        "evidence": Reader(_seeds("*.evid"), ".evid", lambda p: read_evidence(p, three)),
        "solution": Reader(_seeds("*.MPE"), ".MPE", lambda p: read_solution(p, three)),
        "result": Reader(
            [_written(result.save, folder, "r.npz")], ".npz", lambda p: Result.load(p).to_dict(), damaged_arrays
        ),
    }


def learning_readers(folder: Path) -> dict[str, Reader]:
    """Readers of data, learned models and checkpoints; a model is used, a checkpoint continued."""
    return _data_readers() | _trained_readers(folder) | _checkpoint_readers(folder)


def _chains() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(8)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def _points() -> tuple[np.ndarray, np.ndarray]:
    dense = np.abs(np.random.default_rng(1).normal(size=(20, 5)))
    return dense, dense.argmax(1)


def _data_readers() -> dict[str, Reader]:
    from fginfer.extreme.reader import read_training
    from fginfer.learn import SkipGram, read_conll, read_conllu, read_svmlight
    from fginfer.learn.crf import read_crfsuite
    from fginfer.learn.files.treebank import ParseModel

    def parsed(path: Path) -> object:
        return ParseModel.train(path, bits=8, max_iter=1, min_count=1)

    return {
        "conll": Reader(_seeds("*.conll"), ".conll", read_conll),
        "conllu": Reader(_seeds("*.conllu"), ".conllu", read_conllu),
        "svmlight": Reader(_seeds("*.svm"), ".svm", read_svmlight),
        "xmlrepo": Reader(_seeds("*.xml.txt"), ".txt", lambda p: read_training(p, True, False, True)),
        "word2vec": Reader(_seeds("*.vec"), ".vec", lambda p: SkipGram.load(p).transform(["dog the"])),
        "crfsuite": Reader(_seeds("*.crfsuite"), ".txt", lambda p: read_crfsuite(p).predict([[{"a": 1.0}]])),
        "treebank": Reader(_seeds("*.conllu"), ".conllu", parsed),
    }


def _trained_readers(folder: Path) -> dict[str, Reader]:
    """Files of trained models: loaded, then asked."""
    from fginfer.extreme import ExtremeClassifier
    from fginfer.learn import EmbeddingClassifier, KernelStructuredSVM, StructuredSVM
    from fginfer.learn.crf import ChainCRF
    from fginfer.learn.files.describe import describe
    from fginfer.learn.files.load import load_file_model
    from fginfer.learn.files.trained import FileModel

    X, y = _chains()
    dense, labels = _points()
    words = HERE / "corpus" / "words.conll"
    estimators = {
        "model": StructuredSVM(max_iter=3).fit(X, y),
        "model-kernel": KernelStructuredSVM(max_iter=3).fit(X[:3], y[:3]),
        "model-crf": ChainCRF(l1=0.1, max_iter=3).fit(X, y),
    }
    out: dict[str, Reader] = {}
    for name, fitted in estimators.items():
        loaded = type(fitted).load
        out[name] = Reader(
            [_written(fitted.save, folder, f"{name}.npz")], ".npz",
            lambda p, loaded=loaded: loaded(p).predict(X[:1]), damaged_arrays,
        )  # fmt: skip
    out["model-info"] = Reader([out["model-crf"].seeds[0], out["model"].seeds[0]], ".npz", describe, damaged_arrays)
    near = EmbeddingClassifier(max_iter=1).fit(dense, labels)
    out["model-embedding"] = Reader(
        [_written(near.save, folder, "e.npz")], ".npz",
        lambda p: EmbeddingClassifier.load(p).predict(dense[:2]), damaged_arrays,
    )  # fmt: skip
    tagger = FileModel.train(words, max_iter=2)
    out["model-file"] = Reader(
        [_written(tagger.save, folder, "t.npz")],
        ".npz",
        lambda p: load_file_model(p).predict_file(words),
        damaged_arrays,
    )
    many = ExtremeClassifier(lam=0.01).fit(dense, labels)
    out["extreme"] = Reader(
        [_written(many.save, folder, "m.fgx")],
        ".fgx",
        lambda p: ExtremeClassifier.load(p).predict(dense),
        damaged_mapped,
    )
    return out


def _checkpoint_readers(folder: Path) -> dict[str, Reader]:
    """Checkpoints of every solver, continued for two passes."""
    from fginfer.extreme import ExtremeClassifier
    from fginfer.learn import EmbeddingClassifier, SkipGram, StructuredSVM
    from fginfer.learn.crf import ChainCRF

    X, y = _chains()
    dense, labels = _points()
    choices: list[tuple[str, dict[str, Any]]] = [(s, {}) for s in ("bcfw", "cutting-plane", "dcd", "ssg", "gdmm", "fw")]
    runs: dict[str, Callable[[Path, int], object]] = {}
    for solver, options in [*choices, ("gdmm", {"variant": "afw"})]:
        settings: dict[str, Any] = {"solver": solver, "solver_options": options or None, "tol": 1e-9}
        runs[f"checkpoint-{solver}{len(options)}"] = lambda p, most, s=settings: StructuredSVM(
            max_iter=most, checkpoint=p, **s
        ).fit(X, y)
    for solver in ("proxqn", "owlqn", "bcd", "sgd"):
        runs[f"checkpoint-crf-{solver}"] = lambda p, most, solver=solver: ChainCRF(
            0.1, solver=solver, max_iter=most, tol=1e-9, checkpoint=p
        ).fit(X, y)
    runs["checkpoint-embedding"] = lambda p, most: EmbeddingClassifier(max_iter=most, checkpoint=p).fit(dense, labels)
    text = ["the dog", "a dog the cat", "a cat"]
    runs["checkpoint-words"] = lambda p, most: SkipGram(size=4, min_count=1, max_iter=most, checkpoint=p).fit(text)
    runs["checkpoint-pd"] = lambda p, most: ExtremeClassifier(
        solver="pd-sparse", lam=0.01, max_iter=most, tol=1e-9, checkpoint=p
    ).fit(dense, labels)
    out = {}
    for name, run in runs.items():
        path = folder / f"{name}.ckpt"
        run(path, 2)
        out[name] = Reader([path.read_bytes()], ".ckpt", lambda p, run=run: run(p, 4), damaged_arrays)
    journal = folder / "journal.ckpt"

    def columns(path: Path) -> object:
        return ExtremeClassifier(lam=0.01, checkpoint=path).fit(dense, labels)

    columns(journal)
    out["checkpoint-ppd"] = Reader([journal.read_bytes()], ".ckpt", columns, damaged_journal)
    return out


def attack(reader: Reader, folder: Path, inputs: int, seed: int) -> int:
    """How many of the damaged files were refused. Any other exception than ours, and any error of several lines, is
    raised with what led to it."""
    rng = random.Random(seed)
    path = folder / f"attacked{reader.suffix}"
    refused = 0
    for k in range(inputs):
        harm = reader.damage if reader.damage and rng.random() < 0.9 else damaged_text
        data = harm(rng.choice(reader.seeds), rng)
        if rng.random() < 0.02:
            data = spliced(data, rng.choice(reader.seeds), rng)
        path.write_bytes(data)
        try:
            reader.read(path)
        except FginferError as error:
            refused += 1
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error}") from error
        except Exception:
            kept = folder / f"failed-{seed}-{k}{reader.suffix}"
            kept.write_bytes(data)  # a reader that goes on with a run has written over it
            raise
    return refused
