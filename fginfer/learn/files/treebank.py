"""ParseModel: a dependency parser with what turns CoNLL-U files into its features; `fginfer train --task parse`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE
from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn.data.parsing import ArcFeatures, is_projective
from fginfer.learn.data.readers import Sentence, read_conllu
from fginfer.learn.estimator import StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.files.columns import CONLLU, column
from fginfer.learn.files.sentences import input_columns
from fginfer.log import logger

FORM, UPOS, XPOS, HEAD, DEPREL, DEPS = (
    CONLLU.index(name) for name in ("FORM", "UPOS", "XPOS", "HEAD", "DEPREL", "DEPS")
)
_DIGITS = 18  # digits of a head: longer numbers are none
CHUNK = 200  # sentences parsed at a time: every pair of tokens has its own features


class ParseModel:
    """Projective trees over the sentences of a CoNLL-U file: HEAD is learned from two columns, words and tags.

    inputs: their columns. features: of arcs."""

    format, task = "conllu", "parse"

    def __init__(self, svm: StructuredSVM, features: ArcFeatures, inputs: Sequence[int]) -> None:
        self.svm, self.features, self.inputs = svm, features, tuple(inputs)

    # ---- training

    @classmethod
    def train(
        cls,
        path: str | os.PathLike[str],
        feature_columns: Sequence[str | int] | None = None,
        min_count: int = 2,
        longest: int = 40,
        bits: int = 20,
        **settings: Any,
    ) -> ParseModel:
        """Reads a file and fits; `settings` are those of StructuredSVM. Sentences with more than `longest` tokens and
        those that are no projective trees are left out, and the log says how many. feature_columns: words and tags
        (default: FORM with XPOS, or with UPOS where there is no XPOS). min_count: rarer words share one feature."""
        if min_count < 1 or longest < 1:
            raise SettingsError("min_count and longest must be at least 1")
        features = ArcFeatures(bits, min_count)
        sentences = read_conllu(path)
        inputs = _inputs(sentences, feature_columns)
        heads = [_heads(sentence, number, path) for number, sentence in enumerate(sentences, 1)]
        kept = [k for k, head in enumerate(heads) if len(head) <= longest and is_projective(head)]
        logger.info(
            f"{len(kept)} of {len(sentences)} sentences are projective trees of up to {longest} tokens: trained on"
        )
        if not kept:
            raise FormatError(f"no sentence is a projective tree of up to {longest} tokens", str(path))
        pairs = [_pair(sentences[k], inputs) for k in kept]
        X = features.fit(pairs).transform(pairs)
        svm = StructuredSVM(model="parse", **settings)
        try:
            svm.fit(X, [heads[k] for k in kept])
        except KeyboardInterrupt:
            if getattr(svm, "status_", "") != "interrupted":
                raise
        return cls(svm, features, inputs)

    # ---- use

    def predict(self, sentences: Any) -> list[NDArray[Any]]:
        """The head of each token: from 1, 0 for the root. A token is its word and its tag, or a line of CoNLL-U."""
        given = input_columns(sentences, self.inputs, len(CONLLU))
        found = iter(self._heads([_pair(sentence, (0, 1)) for sentence in given if sentence]))
        return [next(found) if sentence else np.zeros(0, np.int64) for sentence in given]

    def predict_file(self, path: str | os.PathLike[str]) -> tuple[list[Sentence], list[NDArray[Any]]]:
        """(sentences of the file, the head of each token)."""
        sentences = read_conllu(path)
        return sentences, self._heads([_pair(sentence, self.inputs) for sentence in sentences])

    def _heads(self, pairs: list[tuple[list[str], list[str]]]) -> list[NDArray[Any]]:
        found: list[Any] = []
        for start in range(0, len(pairs), CHUNK):
            found += self.svm.predict(self.features.transform(pairs[start : start + CHUNK]))
        return [np.asarray(head) for head in found]

    def evaluate(self, path: str | os.PathLike[str]) -> dict[str, float]:
        """Unlabeled attachment: the share of tokens with the right head, and of sentences with all of them."""
        sentences, found = self.predict_file(path)
        truth = [_heads(sentence, number, path) for number, sentence in enumerate(sentences, 1)]
        right = [a == b for a, b in zip(truth, found, strict=True)]
        total = sum(map(len, truth))
        return {
            "sentences": len(truth), "tokens": total, "attachment": float(sum(r.sum() for r in right)) / total,
            "whole_trees": float(np.mean([r.all() for r in right])),
        }  # fmt: skip

    @staticmethod
    def written(sentences: list[Sentence], heads: list[NDArray[Any]]) -> str:
        """CoNLL-U with these heads. Relations are not known; comments, ranges and empty nodes were not read."""
        blocks = []
        for sentence, head in zip(sentences, heads, strict=True):
            lines = []
            for token, h in zip(sentence, head, strict=True):
                line = list(token)
                line[HEAD], line[DEPREL], line[DEPS] = str(int(h)), "_", "_"
                lines.append("\t".join(line) + "\n")
            blocks.append("".join(lines) + "\n")
        return "".join(blocks)

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        header, arrays = self.svm.pack()
        described, more = self.features.export()
        extra = {"format": self.format, "task": self.task, "inputs": list(self.inputs), "arcs": described}
        storage.write(path, {**header, "file_model": extra}, {**arrays, **more})

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> ParseModel:
        try:
            extra, svm = header["file_model"], StructuredSVM.unpack(header, arrays)
            features = ArcFeatures.restore(extra["arcs"], arrays)
            inputs = extra["inputs"]
            if len(inputs) != 2 or any(not isinstance(c, int) or not 0 <= c < len(CONLLU) for c in inputs):
                raise DataError("there are no such columns")
            if svm.model != "parse" or svm.n_features_in_ != 2**features.bits:
                raise DataError("its features are not those it was trained with")
        except DAMAGE as error:
            raise FormatError(f"not a model of `fginfer train` ({error})", path) from None
        return cls(svm, features, inputs)


def _inputs(sentences: list[Sentence], given: Sequence[str | int] | None) -> tuple[int, int]:
    """The columns of words and tags."""
    if given is None:
        tagged = all(token[XPOS] != "_" for sentence in sentences for token in sentence)
        return FORM, XPOS if tagged else UPOS
    chosen = [column(name, len(CONLLU), "conllu") for name in given]
    if len(chosen) != 2 or chosen[0] == chosen[1] or HEAD in chosen:
        raise SettingsError("a parser learns HEAD from two other columns, words and tags, as in FORM,XPOS")
    return chosen[0], chosen[1]


def _pair(sentence: Sentence, inputs: Sequence[int]) -> tuple[list[str], list[str]]:
    words, tags = ([token[c] for token in sentence] for c in inputs)
    return words, tags


def _heads(sentence: Sentence, number: int, path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The heads of the tokens; an error names the sentence, counted from 1."""
    found = []
    for token in sentence:
        text = token[HEAD]
        if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS or int(text) > len(sentence):
            raise FormatError(
                f"sentence {number}, token {token[0]}: the head must be a number from 0 to {len(sentence)}", str(path),
                token=text,
            )  # fmt: skip
        found.append(int(text))
    return np.array(found)
