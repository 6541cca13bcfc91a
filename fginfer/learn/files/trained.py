"""FileModel: a StructuredSVM or ChainCRF with what turns a file into its features; the model of the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import DataError, FginferError, FormatError, SettingsError
from fginfer.learn.crf import ChainCRF
from fginfer.learn.data.features import WindowFeatures, default_templates
from fginfer.learn.data.readers import Sentence, read_conll, read_svmlight
from fginfer.learn.estimator import StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.metrics import chunk_f1, exact_match, micro_f1

FORMATS = ("conll", "svmlight")


def guess_format(path: str | os.PathLike[str]) -> str:
    name = str(path).removesuffix(".gz")
    return "svmlight" if name.endswith((".svm", ".svmlight", ".libsvm")) else "conll"


class FileModel:
    """CoNLL files: chains over window features, the last column is the label. svmlight files: multilabel."""

    def __init__(
        self, format: str, svm: Any, features: WindowFeatures | None, columns: int, zero_based: bool = False
    ) -> None:
        self.format, self.svm, self.features, self.columns, self.zero_based = format, svm, features, columns, zero_based

    # ---- training

    @classmethod
    def train(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,
        templates: Sequence[str] | None = None,
        min_count: int = 1,
        affixes: int = 0,
        zero_based: bool = False,
        model: str = "svm",
        **settings: Any,
    ) -> FileModel:
        """Reads a file and fits; `settings` are those of StructuredSVM, or with model="crf" of ChainCRF. Ctrl-C gives
        what was learned until then, with the status interrupted. The solver is bcfw, for label sets with interactions
        (which it cannot decode exactly) gdmm, unless it is given; that of random fields is proxqn."""
        format = format or guess_format(path)
        if format not in FORMATS:
            raise SettingsError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
        if model not in ("svm", "crf"):
            raise SettingsError(f"model must be svm or crf, not {model!r}")
        if format == "svmlight":
            if model == "crf":
                raise SettingsError("a random field is trained on CoNLL files: tokens with one label each")
            if templates is not None or affixes:
                raise SettingsError("templates and affixes make features of CoNLL files, an svmlight file has its own")
            X, labels = read_svmlight(path, zero_based=zero_based)
            solver = "gdmm" if settings.get("pairwise", True) else "bcfw"
            svm = _fit(StructuredSVM(**{"model": "multilabel", "solver": solver, **settings}), X, labels)
            return cls(format, svm, None, X.shape[1], zero_based)
        if zero_based:
            raise SettingsError("only svmlight files have indices that begin at 0 or 1")
        sentences = read_conll(path)
        columns = len(sentences[0][0]) - 1
        if columns < 1:
            raise FormatError("a training file needs a label in the last of at least two columns", str(path))
        chosen = default_templates(columns) if templates is None else templates
        features = WindowFeatures(chosen, min_count, affixes).fit(_inputs(sentences, columns))
        X, offsets = features.transform(_inputs(sentences, columns))
        estimator = ChainCRF(**settings) if model == "crf" else StructuredSVM(model="chain", **settings)
        svm = _fit(estimator, X, _labels(sentences), offsets)
        return cls(format, svm, features, columns)

    # ---- use

    def predict(self, path: str | os.PathLike[str]) -> tuple[list[Any], list[Any]]:
        """(what was read, answers): sentences and their labels, or label lists of the file and of the model."""
        if self.format == "svmlight":
            X, labels = read_svmlight(path, self.columns, self.zero_based)
            return labels, [list(map(str, answer)) for answer in self.svm.predict(X)]
        assert self.features is not None
        sentences = read_conll(path)
        if len(sentences[0][0]) not in (self.columns, self.columns + 1):
            found = len(sentences[0][0])
            raise FormatError(
                f"the model needs {self.columns} columns, and the label if there is one, not {found}", str(path)
            )
        X, offsets = self.features.transform(_inputs(sentences, self.columns))
        return sentences, np.split(self.svm.predict(X, offsets=offsets), offsets[1:-1])

    def probabilities(self, sentences: list[Sentence]) -> list[NDArray[np.float64]]:
        """P(label | sentence), (tokens, labels) of each sentence as :meth:`predict` gave them; random fields only."""
        if not isinstance(self.svm, ChainCRF) or self.features is None:
            raise SettingsError("only conditional random fields have probabilities: train with --model crf")
        X, offsets = self.features.transform(_inputs(sentences, self.columns))
        return np.split(self.svm.predict_proba(X, offsets=offsets), offsets[1:-1])

    def evaluate(self, path: str | os.PathLike[str]) -> dict[str, float]:
        """Accuracy and, for B-/I-/O labels, chunk F1; or micro-F1 and exact match of label sets."""
        given, answers = self.predict(path)
        if self.format == "svmlight":
            names = {str(c): k for k, c in enumerate(self.svm.classes_)}
            extra = sorted({label for labels in given for label in labels} - set(names))
            names.update({label: len(names) + k for k, label in enumerate(extra)})  # labels the model cannot give

            def matrix(rows: list[list[str]]) -> NDArray[np.bool_]:
                out = np.zeros((len(rows), len(names)), bool)
                for r, labels in enumerate(rows):
                    out[r, [names[label] for label in labels]] = True
                return out

            z, y = matrix(given), matrix(answers)
            return {"examples": len(given), "micro_f1": micro_f1(z, y), "exact_match": exact_match(z, y)}
        if len(given[0][0]) <= self.columns:
            raise FormatError("the file has no label column to compare with", str(path))
        truth = [[token[-1] for token in sentence] for sentence in given]
        right = sum(a == b for z, y in zip(truth, answers, strict=True) for a, b in zip(z, y, strict=True))
        total = sum(map(len, truth))
        out: dict[str, float] = {"sentences": len(truth), "tokens": total, "accuracy": right / total}
        if isinstance(self.svm, ChainCRF) and self.features is not None:
            known = set(map(str, self.svm.classes_))
            if all(label in known for labels in truth for label in labels):
                X, offsets = self.features.transform(_inputs(given, self.columns))
                flat = np.array([label for labels in truth for label in labels])
                out["log_likelihood"] = float(self.svm.log_likelihood(X, flat, offsets).sum())
        if all(str(label) == "O" or str(label)[:2] in ("B-", "I-") for label in self.svm.classes_):
            out["chunk_f1"] = chunk_f1(truth, answers)
        return out

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        header, arrays = self.svm.pack()
        extra: dict[str, Any] = {"format": self.format, "columns": self.columns, "zero_based": self.zero_based}
        if self.features is not None:
            extra["features"], more = self.features.export()
            arrays = {**arrays, **more}
        storage.write(path, {**header, "file_model": extra}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FileModel:
        header, arrays = storage.read(path)
        if "file_model" not in header:
            raise FormatError("this model was not made by `fginfer train`", str(path))
        try:
            kind: Any = ChainCRF if header["kind"] == ChainCRF.kind else StructuredSVM
            extra, svm = header["file_model"], kind.unpack(header, arrays)
            format, columns = extra["format"], extra["columns"]
            features = WindowFeatures.restore(extra["features"], arrays) if format == "conll" else None
            if format not in FORMATS or not isinstance(columns, int) or not isinstance(extra["zero_based"], bool):
                raise DataError("unknown kind of file")
            if svm.n_features_in_ != (columns if features is None else features.n_features):
                raise DataError("its features are not those it was trained with")
        except (KeyError, TypeError, ValueError, FginferError) as error:
            raise FormatError(f"not a model of `fginfer train` ({error})", str(path)) from None
        return cls(format, svm, features, columns, extra["zero_based"])


def _fit(svm: Any, X: Any, y: Any, offsets: Any = None) -> Any:
    try:
        svm.fit(X, y, offsets)
    except KeyboardInterrupt:
        if getattr(svm, "status_", "") != "interrupted":
            raise
    return svm


def _inputs(sentences: list[Sentence], columns: int) -> list[Sentence]:
    return [[token[:columns] for token in sentence] for sentence in sentences]


def _labels(sentences: list[Sentence]) -> NDArray[Any]:
    return np.array([token[-1] for sentence in sentences for token in sentence])
