"""load: a saved model of learning, whatever command or estimator has saved it."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

from fginfer.options import file_named

# How the text of word vectors begins: two numbers in a line.
_VECTORS = re.compile(rb"(\xef\xbb\xbf)?\d{1,18} \d{1,18}\r?\n")


def load(path: str | os.PathLike[str]) -> Any:
    """Opens a model that a command or an estimator has saved.

    Parameters
    ----------
    path : path
        A file written by `fginfer train`, or by `save` of an estimator of `fginfer.learn` or `fginfer.extreme`. Loading
        never runs code from the file.

    Returns
    -------
    model
        The estimator that saved it. A tagger or parser of `fginfer train` has a `predict` that takes sentences: lists
        of tokens, a token being a word, or a list of the columns that the model learned from, or a whole line of its
        file in columns. A classifier of `fginfer train` takes the rows of a matrix. Word vectors of `SkipGram` have no
        `predict`, but `most_similar` and `transform`.

    Raises
    ------
    FormatError
        The file is damaged, or it is something else; a factor graph is for `fginfer.read`, a result for `Result.load`.

    Examples
    --------
    >>> import fginfer
    >>> from fginfer.learn import StructuredSVM
    >>> X, y = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]], [["DET", "NOUN"]] * 2
    >>> StructuredSVM(max_iter=20).fit(X, y).save("tagger.npz")
    >>> fginfer.load("tagger.npz").predict([[{"word": "a"}, {"word": "dog"}]])[0].tolist()
    ['DET', 'NOUN']
    """
    file_named(path, "load")
    # By name, because neither a solve nor the type checker of a caller who only solves needs the learning rooms.
    if import_module("fginfer.extreme.trained").is_extreme(path):
        return import_module("fginfer.extreme").ExtremeClassifier.load(path)
    if _VECTORS.match(_beginning(path)):
        return import_module("fginfer.learn").SkipGram.load(path)
    return import_module("fginfer.learn.files.load").load_model(path)


def _beginning(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(64)
    except OSError:  # whoever reads the rest says what is wrong
        return b""
