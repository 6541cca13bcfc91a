"""SkipGram: word embeddings from a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fginfer.core import clock
from fginfer.core.door import VERSION, cpu_path
from fginfer.core.losses import METHODS
from fginfer.core.search import Floats
from fginfer.core.skipgram import LONGEST
from fginfer.errors import DataError, FormatError, MissingFileError, SettingsError, UnwritableError
from fginfer.learn.data.inputs import check_ranges, check_run_settings, seed_of, threads_of
from fginfer.learn.embedding.descent import SkipGramDescent
from fginfer.learn.embedding.text import read_text, sentences_of, words_of
from fginfer.learn.run.checkpoints import Checkpoints
from fginfer.learn.run.loop import LearnPoint, Limits, drive, shown
from fginfer.log import logger, thousands
from fginfer.options import check_count, check_whole, file_named, is_number
from fginfer.replacing import replacing


class SkipGram(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embeds words so that they predict the words around them: softmax over the whole vocabulary, not a surrogate.

    The objective sums over pairs of words, each once with its frequency, and is minimised by alternating gradient
    descent on input and output rows, after one pass of negative sampling over the text.

    Parameters
    ----------
    size : columns of the embedding. window : words to each side. min_count : rarer words are left out. subsample :
        words more frequent than this are dropped with probability 1 - sqrt(subsample / frequency).
    method : gradients of the softmax "exact", from a "search" for the largest scores, or "decomposed" into `blocks`;
        queries : labels of a search, None is a twentieth of the vocabulary; probes : clusters visited, None is exact.
    negatives, step0 : of the first pass. eta : step size of the passes that follow, relative to the curvature's scale.
    max_iter : passes, the first among them. eval_every : measure the objective every so many passes (0: at the end).
    time_limit, n_jobs, random_state, verbose, callback, checkpoint, checkpoint_interval, warm_start : as elsewhere.

    After `fit`: ``vocabulary_`` (most frequent first), ``embedding_`` (input rows), ``output_``, ``counts_``,
    ``objective_``, ``status_``, ``trace_``, ``n_iter_``.

    >>> from fginfer.learn import SkipGram
    >>> text = [["the", "dog", "barks"], ["the", "cat", "sleeps"]] * 20
    >>> words = SkipGram(size=4, method="exact", subsample=1.0, max_iter=3, random_state=0).fit(text)
    >>> words.embedding_.shape
    (5, 4)
    """

    run_settings = (
        "size", "window", "min_count", "subsample", "method", "queries", "probes", "blocks", "rounds", "keep",
        "negatives", "step0", "eta",
    )  # fmt: skip

    def __init__(
        self,
        size: int = 100,
        window: int = 8,
        min_count: int = 5,
        subsample: float = 1e-4,
        method: str = "decomposed",
        queries: int | None = None,
        probes: int | None = 4,
        blocks: int = 4,
        rounds: int = 1,
        keep: int | None = None,
        negatives: int = 5,
        step0: float = 0.025,
        eta: float = 1.0,
        max_iter: int = 10,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
    ) -> None:
        self.size = size
        self.window = window
        self.min_count = min_count
        self.subsample = subsample
        self.method = method
        self.queries = queries
        self.probes = probes
        self.blocks = blocks
        self.rounds = rounds
        self.keep = keep
        self.negatives = negatives
        self.step0 = step0
        self.eta = eta
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.eval_every = eval_every
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start

    # ---- training

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """X: sentences, as strings (split at white space) or lists of words."""
        begin = clock.now()
        self._check_settings()
        seed = seed_of(self.random_state)
        text = read_text(X, self.min_count, self.subsample, seed)
        k = len(text.vocabulary)
        queries = max(1, min(k, max(50, k // 20))) if self.queries is None else int(self.queries)
        if queries > k:
            raise SettingsError(f"queries is {queries}, but there are {k} words only")
        loss = {
            "method": self.method, "queries": queries, "probes": self.probes, "blocks": self.blocks, "seed": seed,
            "rounds": self.rounds, "keep": queries if self.keep is None else self.keep,
            "n_jobs": threads_of(self.n_jobs), "rest": "moments",
        }  # fmt: skip
        solver = SkipGramDescent(
            text, int(self.size), int(self.window), int(self.negatives), self.step0, self.eta, seed, loss
        )  # fmt: skip
        run = Checkpoints(self, text, solver, None, seed)
        limits = Limits(0.0, self.max_iter, self.time_limit, self.eval_every, self.checkpoint_interval)
        with shown(self.verbose):
            logger.info(f"fginfer {VERSION} · skip-gram · {self.method} · {cpu_path()} · seed {seed}")
            words, pairs = thousands(len(text.words)), thousands(solver.given.nnz)
            logger.info(f"{thousands(k)} different words, {words} after subsampling, {pairs} different pairs")
            self.status_, self.trace_ = drive(
                solver, limits, self.verbose, self.callback, run.save, run.progress, begin
            )  # fmt: skip
        self._keep(text.vocabulary, solver.input, solver.output)
        self.counts_ = text.counts
        last = self.trace_[-1]
        self.n_iter_, self.objective_ = max(1, last.passes), last.primal
        self._last_run = run.state() if self.warm_start and self.status_ != "interrupted" else None
        if self.status_ == "interrupted":
            raise KeyboardInterrupt
        return self

    def _check_settings(self) -> None:
        if self.method not in tuple(METHODS):
            raise SettingsError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}")
        rules = (
            ("size", True, 1), ("window", True, 1), ("min_count", True, 1), ("subsample", False, 0),
            ("blocks", True, 1), ("rounds", True, 1), ("negatives", True, 1), ("step0", False, None),
            ("eta", False, None),
        )  # fmt: skip
        check_ranges(self, rules)
        for name in ("window", "negatives"):
            check_count(name, getattr(self, name))
        check_run_settings(self)
        if self.size > LONGEST:
            raise SettingsError(f"size must be at most {LONGEST}, not {self.size}")
        if self.method == "decomposed" and self.blocks > self.size:
            raise SettingsError(f"blocks must be at most size, {self.size}, not {self.blocks}")
        for name in ("queries", "probes"):
            value = getattr(self, name)
            if value is not None and not (is_number(value, whole=True) and value >= 1):
                raise SettingsError(f"{name} must be None or a positive whole number, not {value!r}")
        if self.keep is not None and not (is_number(self.keep, whole=True) and self.keep >= 0):
            raise SettingsError(f"keep must be None or a whole number, not {self.keep!r}")

    def _keep(self, vocabulary: list[str], embedding: Floats, output: Floats | None) -> None:
        self.vocabulary_, self.embedding_, self.output_ = vocabulary, embedding, output
        self._number = {word: k for k, word in enumerate(vocabulary)}

    # ---- words

    def __getitem__(self, word: str) -> Floats:
        """The embedding of a word; KeyError if it has none."""
        check_is_fitted(self, "embedding_")
        row: Floats = self.embedding_[self._number[word]]
        return row

    def __contains__(self, word: str) -> bool:
        return word in getattr(self, "_number", {})

    def transform(self, X: Iterable[Any]) -> Floats:
        """Sentences as the means of their words' embeddings (zeros where none is known)."""
        check_is_fitted(self, "embedding_")
        rows = []
        for i, sentence in enumerate(sentences_of(X)):
            known = [self._number[w] for w in words_of(sentence, f"sentence {i}") if w in self._number]
            rows.append(self.embedding_[known].mean(0) if known else np.zeros(self.embedding_.shape[1], np.float32))
        return np.array(rows, np.float32).reshape(len(rows), self.embedding_.shape[1])

    def most_similar(self, word: str | ArrayLike, n: int = 10) -> list[tuple[str, float]]:
        """The n words with the largest cosine to a word, or to a vector; the word itself is left out."""
        check_is_fitted(self, "embedding_")
        if isinstance(word, str) and word not in self._number:
            raise DataError(f"the word {word!r} is not in the vocabulary")
        check_whole("n", n)
        if n < 0:
            raise SettingsError(f"n must not be negative, but it is {n}")
        try:
            vector = self[word] if isinstance(word, str) else np.asarray(word, np.float32)
        except (TypeError, ValueError):
            raise DataError(f"neither a word nor a vector: {word!r}") from None
        if vector.shape != self.embedding_.shape[1:]:
            raise DataError(f"a vector must have {self.embedding_.shape[1]} numbers")
        if not np.isfinite(vector).all():
            raise DataError("a vector must hold finite numbers")
        lengths = np.linalg.norm(self.embedding_, axis=1) * float(np.linalg.norm(vector))
        cosines = self.embedding_ @ vector / np.maximum(lengths, 1e-30)
        if isinstance(word, str):
            cosines[self._number[word]] = -np.inf
        order = np.argsort(-cosines, kind="stable")[: min(n, len(cosines) - isinstance(word, str))]
        return [(self.vocabulary_[k], float(cosines[k])) for k in order]

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """word2vec's text format: a line with the sizes, then a line for each word, its vector after it. Numbers are
        written so that reading them gives the same bits."""
        check_is_fitted(self, "embedding_")
        for word in self.vocabulary_:
            if not word or any(c in word for c in " \n\r"):
                raise DataError(f"the word {word!r} is empty or has a blank or a line end: the format cannot hold it")
        try:
            with replacing(file_named(path, "save")) as file:
                file.write(f"{len(self.vocabulary_)} {self.embedding_.shape[1]}\n".encode())
                for word, row in zip(self.vocabulary_, self.embedding_, strict=True):
                    file.write(f"{word} {' '.join(f'{v:.9g}' for v in row.tolist())}\n".encode())
        except OSError as error:
            raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads word2vec's text format: embeddings only, for :meth:`most_similar` and :meth:`transform`."""
        words: list[str] = []
        rows: list[Floats] = []
        try:
            with open(path, encoding="utf-8-sig") as file:
                head = file.readline().split()
                if len(head) != 2 or not all(h.isdigit() for h in head) or int(head[1]) < 1:
                    raise FormatError("the first line must be: words columns", str(path), 1)
                n, d = int(head[0]), int(head[1])
                for number, line in enumerate(file, 2):
                    word, *numbers = line.rstrip("\n").rstrip(" ").split(" ")
                    if len(numbers) != d or not word or "_" in line[len(word) :]:  # 1_0 is a number to Python
                        raise FormatError(f"expected a word and {d} numbers", str(path), number)
                    words.append(word)
                    rows.append(np.array(numbers, np.float32))
                    if not np.isfinite(rows[-1]).all():
                        raise FormatError("a number is not finite", str(path), number, word)
        except FileNotFoundError:
            raise MissingFileError("there is no such file", str(path)) from None
        except OSError as error:
            raise FormatError(f"cannot be read ({error.strerror or error})", str(path)) from None
        except UnicodeDecodeError as error:
            raise FormatError(f"not UTF-8 text ({error.reason})", str(path)) from None
        except ValueError:
            raise FormatError("not a number", str(path), len(words) + 1) from None
        if len(words) != n or len(set(words)) != n:
            raise FormatError(f"{len(set(words))} different words, but the first line says {n}", str(path))
        model = cls(size=d)
        model._keep(words, np.array(rows, np.float32).reshape(n, d), None)
        return model
