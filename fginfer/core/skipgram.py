"""One pass of negative sampling over a text, in the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import ffi, lib, pointer
from fginfer.core.search import Floats

LONGEST = 1024  # columns that the core has room for


class NegativeSampling:
    """The pass, in slices; `at` is the next word, `random` the state of its generator."""

    def __init__(
        self,
        words: NDArray[np.int32],
        sentences: NDArray[np.int32],
        drawn: NDArray[np.int32],
        rows: tuple[Floats, Floats],
        window: int,
        negatives: int,
        step: float,
        seed: int,
    ) -> None:
        w = ffi.new("fgi_skipgram *")
        self._keep: Any = (w, words, sentences, drawn, rows)
        w.n, w.words, w.sentence = len(words), pointer(words), pointer(sentences)
        w.labels, w.d = rows[0].shape
        w.window, w.negatives, w.step = window, negatives, step
        w.n_drawn, w.drawn = len(drawn), pointer(drawn)
        w.input, w.output = pointer(rows[0]), pointer(rows[1])
        self._words, self._random = w, ffi.new("uint64_t *", seed)
        self.at = 0

    @property
    def random(self) -> int:
        return int(self._random[0])

    @random.setter
    def random(self, state: int) -> None:
        self._random[0] = state

    def advance(self, n: int) -> bool:
        """The next n words; True at the end of the text."""
        end = min(self.at + n, self._words.n)
        lib.fgi_skipgram_pass(self._words, self.at, end, self._random)
        self.at = end
        return bool(end == self._words.n)
