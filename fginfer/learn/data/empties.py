"""Sequences without tokens, among others: nothing is asked about them, and their answer has no tokens either."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fginfer.learn.data.examples import Example, is_listed
from fginfer.learn.data.named import is_token
from fginfer.learn.data.sequences import in_the_form_of, is_list

SEQUENCES = ("chain", "graph")  # models whose examples have any number of tokens


def _is_empty(x: Any) -> bool:
    features = x.features if isinstance(x, Example) else x
    shape = getattr(features, "shape", None)
    try:
        return bool((len(features) if shape is None else shape[0]) == 0)
    except (TypeError, IndexError):
        return False  # whatever it is: others say so


def _are_examples(X: Any, offsets: ArrayLike | None) -> bool:
    """A list of sequences, also of texts."""
    if is_listed(X, offsets):
        return True
    if offsets is not None or not is_list(X):
        return False
    first = next((x for x in X if not _is_empty(x)), None)
    return isinstance(first, (list, tuple)) and is_token(first[0])


def past_empties(width: Callable[[Any], tuple[int, ...]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For methods of estimators of tokens that answer a list of sequences by a list of arrays; width: what an array has
    for each token. Only where some sequence has tokens, so that all other input is judged as ever."""

    def changed(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def answer(self: Any, X: Any, offsets: ArrayLike | None = None, **more: Any) -> Any:
            if more or not hasattr(self, "classes_") or self.model not in SEQUENCES or not _are_examples(X, offsets):
                return method(self, X, offsets, **more)
            examples = list(X)
            held = [k for k, x in enumerate(examples) if not _is_empty(x)]
            if not held or len(held) == len(examples):
                return method(self, X, offsets)
            found = method(self, [examples[k] for k in held])
            dtype = found[0].dtype
            parts: list[Any] = [np.zeros((0, *width(self)), dtype) for _ in examples]
            for k, part in zip(held, found, strict=True):
                parts[k] = part
            return in_the_form_of(X, parts)

        return answer

    return changed
