"""FileModel: a StructuredSVM or ChainCRF with what turns a file into its features; the model of the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE
from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn.crf import ChainCRF
from fginfer.learn.data.features import WindowFeatures, default_templates
from fginfer.learn.data.readers import Sentence, read_conll, read_conllu, read_svmlight
from fginfer.learn.data.strings import string_array
from fginfer.learn.estimator import StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.files.columns import column
from fginfer.learn.files.sentences import input_columns
from fginfer.learn.metrics import chunk_f1, exact_match, micro_f1

FORMATS = ("conll", "conllu", "svmlight")
TASKS = ("tag", "multiclass", "multilabel")


def guess_format(path: str | os.PathLike[str]) -> str:
    name = str(path).removesuffix(".gz")
    if name.endswith(".conllu"):
        return "conllu"
    return "svmlight" if name.endswith((".svm", ".svmlight", ".libsvm")) else "conll"


class FileModel:
    """CoNLL files: chains over window features; the label is the last column (CoNLL-U: UPOS, from the words) unless
    other columns are given. svmlight files: one label a line is multiclass, else multilabel.

    columns: of an svmlight file its features, of others those in a line besides the label; label: its column (None: the
    last); inputs: columns that features are made of (None: all others)."""

    def __init__(
        self,
        format: str,
        svm: Any,
        features: WindowFeatures | None,
        columns: int,
        zero_based: bool = False,
        label: int | None = None,
        inputs: Sequence[int] | None = None,
    ) -> None:
        self.format, self.svm, self.features, self.columns, self.zero_based = format, svm, features, columns, zero_based
        self.label = columns if label is None else label
        self.inputs = [c for c in range(columns + 1) if c != self.label] if inputs is None else list(inputs)

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
        label_column: str | int | None = None,
        feature_columns: Sequence[str | int] | None = None,
        task: str | None = None,
        **settings: Any,
    ) -> FileModel:
        """Reads a file and fits; `settings` are those of StructuredSVM, or with model="crf" of ChainCRF. Ctrl-C gives
        what was learned until then, with the status interrupted."""
        format = format or guess_format(path)
        if task is not None and task not in TASKS:
            raise SettingsError(f"task must be one of {', '.join(TASKS)}, not {task!r} (ParseModel learns to parse)")
        if task is not None and (task == "tag") == (format == "svmlight"):
            raise SettingsError(f"the task {task} does not go with a {format} file")
        if format not in FORMATS:
            raise SettingsError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
        if model not in ("svm", "crf"):
            raise SettingsError(f"model must be svm or crf, not {model!r}")
        if format == "svmlight":
            if model == "crf":
                raise SettingsError("a random field is trained on CoNLL files: tokens with one label each")
            if templates is not None or affixes:
                raise SettingsError("templates and affixes make features of CoNLL files, an svmlight file has its own")
            if label_column is not None or feature_columns is not None:
                raise SettingsError("an svmlight file has no columns to choose from")
            return cls._train_rows(path, zero_based, task, settings)
        if zero_based:
            raise SettingsError("only svmlight files have indices that begin at 0 or 1")
        sentences = _read(path, format)
        label, inputs = _columns(sentences, path, format, label_column, feature_columns)
        chosen = default_templates(len(inputs)) if templates is None else templates
        features = WindowFeatures(chosen, min_count, affixes).fit(_inputs(sentences, inputs))
        X, offsets = features.transform(_inputs(sentences, inputs))
        estimator = ChainCRF(**settings) if model == "crf" else StructuredSVM(model="chain", **settings)
        svm = _fit(estimator, X, _labels(sentences, label), offsets)
        return cls(format, svm, features, len(sentences[0][0]) - 1, label=label, inputs=inputs)

    @classmethod
    def _train_rows(
        cls, path: str | os.PathLike[str], zero_based: bool, task: str | None, settings: dict[str, Any]
    ) -> FileModel:
        """On an svmlight file: classes where every row has one label, else label sets."""
        X, labels = read_svmlight(path, zero_based=zero_based)
        single = all(len(row) == 1 for row in labels)
        if task == "multiclass" and not single:
            raise FormatError("a multiclass file has one label in every line", str(path))
        if task == "multiclass" or (task is None and single):
            y = np.array([row[0] for row in labels])
            svm = _fit(StructuredSVM(model="multiclass", **settings), X, y)
        else:
            svm = _fit(StructuredSVM(model="multilabel", **settings), X, labels)
        return cls("svmlight", svm, None, X.shape[1], zero_based)

    # ---- use

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels that can be answers."""
        found: NDArray[Any] = self.svm.classes_
        return found

    def predict(self, X: Any) -> Any:
        """Labels of each sentence; or, of a model that was trained on an svmlight file, of each row of a matrix.

        A token of a sentence is a word, or a list of columns: those that the model learned from, or all of a line.
        """
        if self.features is None:
            return self.svm.predict(X)
        sentences = input_columns(X, self.inputs, self.columns + 1)
        some = [sentence for sentence in sentences if sentence]
        found = iter(self._tags(some) if some else ())
        return [next(found) if sentence else self.classes_[:0] for sentence in sentences]

    def _tags(self, inputs: list[Sentence]) -> list[Any]:
        assert self.features is not None
        X, offsets = self.features.transform(inputs)
        return np.split(self.svm.predict(X, offsets=offsets), offsets[1:-1])

    def predict_file(self, path: str | os.PathLike[str]) -> tuple[list[Any], list[Any]]:
        """(what was read, answers): sentences and their labels, or label lists of the file and of the model."""
        if self.format == "svmlight":
            X, labels = read_svmlight(path, self.columns, self.zero_based)
            answers = self.svm.predict(X)
            if self.svm.model == "multiclass":
                return labels, [[str(answer)] for answer in answers]
            return labels, [list(map(str, answer)) for answer in answers]
        sentences = _read(path, self.format)
        found = len(sentences[0][0])
        if found != self.columns + 1 and (found != self.columns or self.label != self.columns):
            raise FormatError(
                f"the model needs {self.columns} columns, and the label if there is one, not {found}", str(path)
            )
        return sentences, self._tags(_inputs(sentences, self.inputs))

    def written(self, sentences: list[Sentence], answers: list[Any]) -> str:
        """The sentences with their answers: CoNLL-U with these labels in their column, CoNLL with one more column."""
        if self.format != "conllu":
            return "\n".join(
                "".join(" ".join([*token, str(label)]) + "\n" for token, label in zip(sentence, labels, strict=True))
                for sentence, labels in zip(sentences, answers, strict=True)
            )
        return "".join(
            "".join(
                "\t".join([*token[: self.label], str(label), *token[self.label + 1 :]]) + "\n"
                for token, label in zip(sentence, labels, strict=True)
            )
            + "\n"
            for sentence, labels in zip(sentences, answers, strict=True)
        )

    def probabilities(self, sentences: list[Sentence]) -> list[NDArray[np.float64]]:
        """P(label | sentence), (tokens, labels) of each sentence that was read; random fields only."""
        if not isinstance(self.svm, ChainCRF) or self.features is None:
            raise SettingsError("only conditional random fields have probabilities: train with --model crf")
        X, offsets = self.features.transform(_inputs(sentences, self.inputs))
        return np.split(self.svm.predict_proba(X, offsets=offsets), offsets[1:-1])

    def evaluate(self, path: str | os.PathLike[str]) -> dict[str, float]:
        """Accuracy and, for B-/I-/O labels, chunk F1; or micro-F1 and exact match of label sets."""
        given, answers = self.predict_file(path)
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
            if self.svm.model == "multiclass":
                if any(len(labels) != 1 for labels in given):
                    raise FormatError("a multiclass file has one label in every line", str(path))
                return {"examples": len(given), "accuracy": exact_match(z, y)}
            return {"examples": len(given), "micro_f1": micro_f1(z, y), "exact_match": exact_match(z, y)}
        if len(given[0][0]) <= self.columns:
            raise FormatError("the file has no label column to compare with", str(path))
        truth = [[token[self.label] for token in sentence] for sentence in given]
        right = sum(a == b for z, y in zip(truth, answers, strict=True) for a, b in zip(z, y, strict=True))
        total = sum(map(len, truth))
        out: dict[str, float] = {"sentences": len(truth), "tokens": total, "accuracy": right / total}
        if isinstance(self.svm, ChainCRF) and self.features is not None:
            known = set(map(str, self.svm.classes_))
            if all(label in known for labels in truth for label in labels):
                X, offsets = self.features.transform(_inputs(given, self.inputs))
                flat = np.array([label for labels in truth for label in labels])
                out["log_likelihood"] = float(self.svm.log_likelihood(X, flat, offsets).sum())
        if all(str(label) == "O" or str(label)[:2] in ("B-", "I-") for label in self.svm.classes_):
            out["chunk_f1"] = chunk_f1(truth, answers)
        return out

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        header, arrays = self.svm.pack()
        extra: dict[str, Any] = {"format": self.format, "columns": self.columns, "zero_based": self.zero_based}
        extra["label"], extra["inputs"] = self.label, self.inputs
        if self.features is not None:
            extra["features"], more = self.features.export()
            arrays = {**arrays, **more}
        storage.write(path, {**header, "file_model": extra}, arrays)

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> FileModel:
        try:
            kind: Any = ChainCRF if header["kind"] == ChainCRF.kind else StructuredSVM
            extra, svm = header["file_model"], kind.unpack(header, arrays)
            format, columns = extra["format"], extra["columns"]
            features = WindowFeatures.restore(extra["features"], arrays) if format != "svmlight" else None
            label, inputs = extra["label"], extra["inputs"]
            for number in [*([] if label is None else [label]), *(inputs or ())]:
                if not isinstance(number, int) or not 0 <= number <= columns:
                    raise DataError("there is no such column")
            if format not in FORMATS or not isinstance(columns, int) or not isinstance(extra["zero_based"], bool):
                raise DataError("unknown kind of file")
            if svm.n_features_in_ != (columns if features is None else features.n_features):
                raise DataError("its features are not those it was trained with")
        except DAMAGE as error:
            raise FormatError(f"not a model of `fginfer train` ({error})", path) from None
        return cls(format, svm, features, columns, extra["zero_based"], label, inputs)


def _fit(svm: Any, X: Any, y: Any, offsets: Any = None) -> Any:
    try:
        svm.fit(X, y, offsets)
    except KeyboardInterrupt:
        if getattr(svm, "status_", "") != "interrupted":
            raise
    return svm


def _read(path: str | os.PathLike[str], format: str) -> list[Sentence]:
    return read_conllu(path) if format == "conllu" else read_conll(path)


def _columns(
    sentences: Any, path: str | os.PathLike[str], format: str, label: str | int | None, features: Any
) -> tuple[int, list[int]]:
    """Numbers of the label's column and of those to learn from; None: the usual ones of the format."""
    width = len(sentences[0][0])
    if width < 2:
        raise FormatError("a training file needs a label in the last of at least two columns", str(path))
    usual: tuple[Any, Any] = ("UPOS", ["FORM"]) if format == "conllu" else (-1, None)
    target = column(usual[0] if label is None else label, width, format)
    wanted = usual[1] if features is None else features
    if wanted is None:
        wanted = [c for c in range(width) if c != target]
    inputs = [column(c, width, format) for c in wanted]
    if target in inputs or not inputs or len(set(inputs)) != len(inputs):
        raise SettingsError("feature columns are one or more different columns, the label is none of them")
    return target, inputs


def _inputs(sentences: list[Sentence], columns: Sequence[int]) -> list[Sentence]:
    return [[[token[c] for c in columns] for token in sentence] for sentence in sentences]


def _labels(sentences: list[Sentence], label: int) -> NDArray[Any]:
    return string_array([token[label] for sentence in sentences for token in sentence], "labels")
