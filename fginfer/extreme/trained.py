"""Models of extreme classification trained from, and applied to, files; what the command line uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.arrays import begins
from fginfer.core.extreme import Floats, Lines
from fginfer.errors import FormatError
from fginfer.extreme import metrics
from fginfer.extreme.data import stacked
from fginfer.extreme.estimator import ExtremeClassifier
from fginfer.extreme.model import MAGIC, WITHOUT_SUM
from fginfer.extreme.reader import Block, Reader, read_training
from fginfer.extreme.settings import check_settings, trains_by_label
from fginfer.learn.data.inputs import threads_of


def is_extreme(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as models of extreme classification do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) in (MAGIC, WITHOUT_SUM)
    except OSError:
        return False


def train(
    path: str | os.PathLike[str], zero_based: bool, memory: float | None, estimator: ExtremeClassifier
) -> ExtremeClassifier:
    """Trains on a file; Ctrl-C keeps what there is and leaves ``status_`` "interrupted"."""
    begin = clock.now()
    check_settings(estimator)
    found = read_training(path, zero_based, estimator.unit_rows, trains_by_label(estimator), memory)
    estimator.multilabel_, estimator.listed_, estimator.dense_ = True, True, False
    try:
        estimator._fit_data(found.data, found.classes, begin)
    except KeyboardInterrupt:
        if getattr(estimator, "status_", "") != "interrupted":
            raise
    finally:
        found.folder.cleanup()  # mapped files stay readable until they are let go
    return estimator


def save(estimator: ExtremeClassifier, path: str | os.PathLike[str], zero_based: bool) -> None:
    """Writes a model that knows how its files count."""
    estimator.save(path, {"file": {"zero_based": zero_based}})


def load(path: str | os.PathLike[str]) -> tuple[ExtremeClassifier, bool]:
    """(model, whether indices of its files begin at 0)."""
    model = ExtremeClassifier.load(path)
    return model, bool(model.model_.header.get("file", {}).get("zero_based", False))


def topk_of(
    model: ExtremeClassifier, path: str | os.PathLike[str], zero_based: bool, k: int, threads: int = 1
) -> Iterator[tuple[Block, NDArray[Any], Floats]]:
    """Blocks of a file with the label numbers and scores of their rows; only one block is in memory."""
    for block in Reader(path, zero_based):
        numbers, scores = model.model_.topk(block.lines(model.n_features_in_, model.unit_rows), k, threads)
        yield block, numbers, scores


def evaluate(
    model: ExtremeClassifier, path: str | os.PathLike[str], zero_based: bool, threads: int = 1
) -> dict[str, float]:
    """P@k, nDCG@k, PSP@k and F1 on a labelled file. Labels that the model does not know count as missed."""
    classes, known = model.classes_, len(model.classes_)
    number = {str(c).encode(): k for k, c in enumerate(classes)}
    truths, answers, said = [], [], []
    for block, numbers, _ in topk_of(model, path, zero_based, 5, threads):
        rows = [sorted(number.setdefault(label, len(number)) for label in row) for row in block.labels]
        counts = np.array([len(row) for row in rows], np.int64)
        index = np.array([k for row in rows for k in row], np.int32)
        truths.append(Lines(begins(counts), index, np.ones(len(index), np.float32), 0))
        answers.append(numbers)
        lines = block.lines(model.n_features_in_, model.unit_rows)
        above = model.model_.above(lines, model.threshold_, threads_of(threads))
        said.append(Lines(above.begin, above.index, np.ones(above.nnz, np.float32), known))
    width = max(known, len(number))
    truth = stacked(truths, width)
    if truth.nnz == 0:
        raise FormatError("the file has no labels to compare with", str(path))
    positives = np.concatenate([model.positives_, np.zeros(width - known, np.int64)])
    propensity = metrics.propensities(positives, int(model.n_rows_))
    out = {"rows": truth.n, **metrics.report(truth, np.concatenate(answers), propensity)}
    return {**out, **metrics.f1_scores(truth, stacked(said, width))}
