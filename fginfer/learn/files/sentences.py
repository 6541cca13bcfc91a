"""Sentences that a program gives to a model of the command line: words, or columns as in its training file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fginfer.errors import DataError
from fginfer.learn.data.readers import Sentence


def input_columns(sentences: Any, inputs: Sequence[int], width: int) -> list[Sentence]:
    """The columns that a model learned from, of every token. A token is those columns, in this order; or all `width`
    columns of a line; or a word, where there is only one column to learn from."""
    if isinstance(sentences, str | bytes | dict) or not hasattr(sentences, "__iter__"):
        raise DataError("sentences must be a list of lists of tokens")
    return [
        [_token(token, inputs, width, f"sentence {s}, token {t}") for t, token in enumerate(_listed(sentence, s))]
        for s, sentence in enumerate(sentences)
    ]


def _listed(sentence: Any, number: int) -> list[Any]:
    if isinstance(sentence, str | bytes | dict) or not hasattr(sentence, "__iter__"):
        raise DataError(f"sentence {number} must be a list of tokens, not {type(sentence).__name__}")
    return list(sentence)


def _token(token: Any, inputs: Sequence[int], width: int, where: str) -> list[str]:
    if isinstance(token, str):
        if len(inputs) == 1:
            return [token]
        raise DataError(f"{where}: the model learned from {len(inputs)} columns, so a token is a list of them")
    if isinstance(token, bytes | dict) or not hasattr(token, "__iter__"):
        raise DataError(f"{where} must be text or a list of columns, not {type(token).__name__}")
    columns = list(token)
    if not all(isinstance(column, str) for column in columns):
        raise DataError(f"{where}: a column is not text")
    if len(columns) == len(inputs):
        return columns
    if len(columns) != width:
        raise DataError(f"{where} has {len(columns)} columns, not the {len(inputs)} of the features or all {width}")
    return [columns[c] for c in inputs]
