"""Maximum inner-product search: the labels with the largest <row_k, x> - message(k), over rows that change.

SearchIndex    exact or approximate, by the core's clustered index
BackendIndex   the same questions put to hnswlib, faiss, or an object of your own

>>> index = SearchIndex([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])
>>> index.search([1.0, 1.0], 2).labels.tolist()
[1, 0]
>>> index.search([1.0, 1.0], messages={1: 1.5}, excluded=[2]).labels.tolist()
[0]
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.search import EXACT, SCAN, Floats, Lists, Messages, SearchCounts, SearchHandle
from fginfer.errors import ModelError, SettingsError
from fginfer.options import check_count, check_number, check_whole
from fginfer.search_backends import BACKENDS, Backend
from fginfer.search_questions import as_labels, as_lists, as_messages, as_rows, check_seed, check_threads, check_way

SearchAnswers = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.uint8]]  # labels, values, proven


class Found(NamedTuple):
    """Labels and values, best first; -1 and -inf where exclusions leave too few. `proven`: the answer is the exact one.

    For one query flat arrays and a bool, for several one row (one entry of `proven`) each.
    """

    labels: NDArray[np.int32]
    values: NDArray[np.float64]
    proven: Any


class _Index:
    """What the indexes share: how questions are put, and recall."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    def search(
        self,
        x: ArrayLike,
        k: int = 1,
        *,
        probes: int | None = None,
        candidates: int | None = None,
        messages: Any = None,
        excluded: Any = None,
    ) -> Found:
        """The k labels with the largest <row, x> - message, for one query (flat x) or several (a table).

        probes : clusters to visit. candidates : rows (up to thrice as many) that a guess from codes of one bit a column
        lets through, without a look at clusters; they are ranked again by a byte a column, and the best quarter more
        than k are computed. None for both is exact. messages : {label: value} or
        (labels, values) for all queries, or a list of such (or None), one per query. excluded : labels that may not be
        returned, a list for all queries, or a list of lists.
        """
        flat = np.ndim(x) == 1
        queries = as_rows(np.atleast_2d(np.asarray(x)), self.shape[1], "queries")
        check_whole("k", k)
        if not 1 <= k <= self.shape[0]:
            raise ModelError(f"{k} labels are wanted of {self.shape[0]} rows")
        check_way(probes, candidates)
        given = as_messages(messages, len(queries), self.shape[0])
        banned = as_lists(excluded, len(queries), self.shape[0])
        labels, values, proven = self._search(queries, int(k), probes, given, banned, candidates)
        return Found(labels[0], values[0], bool(proven[0])) if flat else Found(labels, values, proven.astype(bool))

    def _search(
        self,
        x: Floats,
        k: int,
        probes: int | None,
        messages: Messages | None,
        excluded: Lists | None,
        candidates: int | None = None,
    ) -> SearchAnswers:
        raise NotImplementedError

    def _exact(self, x: Floats, k: int) -> NDArray[np.int32]:
        raise NotImplementedError

    def recall(self, x: ArrayLike, k: int = 1, *, probes: int | None = None, candidates: int | None = None) -> float:
        """The share of the true best k that an approximate search finds, measured on these queries."""
        queries = as_rows(np.atleast_2d(np.asarray(x)), self.shape[1], "queries")
        if not len(queries):
            raise ModelError("recall is measured on queries: give one or more")
        found = self.search(queries, k, probes=probes, candidates=candidates).labels
        truth = self._exact(queries, k)
        return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(found, truth, strict=True)]))

    def _entries(
        self, labels: ArrayLike, columns: ArrayLike, values: ArrayLike
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        which, where = as_labels(labels, self.shape[0]), as_labels(columns, self.shape[1])
        new = as_rows(np.atleast_2d(values), what="values").ravel()
        if not len(which) == len(where) == len(new):
            raise ModelError("labels, columns and values must have the same length")
        return which, where, new


class SearchIndex(_Index):
    """Rows in clusters, with bounds: exact answers from few rows where the rows are clustered, else by a dense scan.

    Parameters
    ----------
    rows : (labels, columns), finite; kept in single precision.
    clusters : 0 chooses (six for every square root of the number of rows, 40 rows each or more). Many small clusters
        help exact search, few large ones approximate search for many labels.
    threads : of a batch; no answer depends on them. seed : of the clustering.
    parts : of the columns, up to 8; with several, `candidates` are the rows that rank first in some part.

    Building costs rows * clusters * columns multiplications (and about as much again for k-means); an update costs
    O(columns) a row, and O(clusters * columns) for a row that has moved by more than a quarter of its length since it
    was last assigned. Ties go to the lowest label; exact answers are those of a dense scan bit for bit. Where
    products may underflow or overflow in single precision they are those of a dense scan without a gain in time; a row
    whose sum overflows both ways has no value, and is not returned.

    Exact search takes the bounds of clusters where these leave few rows, else a scan of all rows in a byte a column
    with bounds on what that leaves out, and computes the few that may matter; ``clusters=1`` builds at once, and scans.
    Where rows are not clustered, search by `candidates`: it works wherever rows lie. Codes and bytes, nine
    thirty-seconds of the rows, are made by the first search that needs them and follow updates.

    >>> from fginfer.oracles import SearchIndex
    >>> index = SearchIndex([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    >>> index.search([[1.0, 1.0]], 2).labels.tolist()
    [[2, 0]]
    """

    def __init__(
        self,
        rows: ArrayLike,
        *,
        clusters: int = 0,
        rounds: int = 6,
        threads: int = 1,
        seed: int = 0,
        parts: int = 1,
    ) -> None:
        table = as_rows(rows)
        if not table.size:
            raise ModelError("an index needs at least one row and one column")
        self.shape = (int(table.shape[0]), int(table.shape[1]))
        for name, value in {"clusters": clusters, "rounds": rounds, "parts": parts}.items():
            check_count(name, value)
        check_seed(seed)
        check_threads(threads, "threads")
        self.handle = SearchHandle(table, clusters, rounds, threads, seed, parts)

    def _search(
        self,
        x: Floats,
        k: int,
        probes: int | None,
        messages: Messages | None,
        excluded: Lists | None,
        candidates: int | None = None,
    ) -> SearchAnswers:
        if candidates is None:
            return self.handle.run(x, k, EXACT if probes is None else int(probes), messages, excluded)
        return self.handle.run(x, k, EXACT, messages, excluded, min(int(candidates), self.shape[0]))

    def _exact(self, x: Floats, k: int) -> NDArray[np.int32]:
        return self.handle.run(x, k, EXACT, None, None)[0]

    def scan(self, x: ArrayLike, k: int = 1, *, messages: Any = None, excluded: Any = None) -> Found:
        """As :meth:`search`, by a dense scan: the reference."""
        queries = as_rows(np.atleast_2d(np.asarray(x)), self.shape[1], "queries")
        given = as_messages(messages, len(queries), self.shape[0])
        banned = as_lists(excluded, len(queries), self.shape[0])
        check_count("k", k)
        labels, values, proven = self.handle.run(queries, k, SCAN, given, banned)
        if np.ndim(x) == 1:
            return Found(labels[0], values[0], bool(proven[0]))
        return Found(labels, values, proven.astype(bool))

    def tune(self, x: ArrayLike, k: int = 1, *, recall: float = 0.95, by: str = "probes") -> int:
        """The fewest probes (a power of two, or all clusters) that reach this recall on these queries; or, by
        "candidates", the fewest of those (k, or half as many again, and so on)."""
        check_number("recall", recall)
        if not 0 < recall <= 1:
            raise SettingsError(f"recall must lie in (0, 1], not {recall!r}")
        if by not in ("probes", "candidates"):
            raise SettingsError(f"by must be 'probes' or 'candidates', not {by!r}")
        self.search(x, k)  # whether these are queries for k labels
        tried, most = (1, self.clusters) if by == "probes" else (int(k), self.shape[0])
        while tried < most and self.recall(x, k, **{by: tried}) < recall:
            tried = 2 * tried if by == "probes" else tried + tried // 2 + 1
        return min(tried, most)

    # ---- updates

    def set_rows(self, labels: ArrayLike, rows: ArrayLike) -> None:
        """Row labels[i] becomes rows[i]; of a label listed twice the last counts."""
        which, table = as_labels(labels, self.shape[0]), as_rows(np.atleast_2d(rows), self.shape[1])
        if len(which) != len(table):
            raise ModelError(f"{len(which)} labels, but {len(table)} rows")
        self.handle.set_rows(which, table)

    def refresh(self, labels: ArrayLike, table: Floats) -> None:
        """Reads the listed rows again from the whole table that the index was made from (float32)."""
        if not isinstance(table, np.ndarray) or table.dtype != np.float32 or table.shape != self.shape:
            raise ModelError(f"the table must be float32 of shape {self.shape}")
        self.handle.refresh(as_labels(labels, self.shape[0]), table)

    def set_entries(self, labels: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Entry columns[i] of row labels[i] becomes values[i]."""
        which, where, new = self._entries(labels, columns, values)
        self.handle.set_entries(which, where, new)

    def rebuild(self) -> None:
        """Makes the clusters anew, for when most rows have changed."""
        self.handle.rebuild()

    def rows(self, labels: ArrayLike | None = None) -> Floats:
        """The rows as they are now."""
        which = np.arange(self.shape[0], dtype=np.int32) if labels is None else as_labels(labels, self.shape[0])
        return self.handle.rows(which, self.shape[1])

    # ---- what it is and has done

    @property
    def clusters(self) -> int:
        return int(self.handle.counts_raw().clusters)

    @property
    def memory(self) -> int:
        """Bytes held."""
        return int(self.handle.counts_raw().memory)

    @property
    def counts(self) -> SearchCounts:
        return self.handle.counts()


# ---- other libraries behind the same questions


class BackendIndex(_Index):
    """A library for nearest neighbours behind the questions of :class:`SearchIndex`. Its answers are never proven.

    backend : "hnswlib" or "faiss" (where installed), or a function of (rows, threads, seed) that gives a
    :class:`Backend`. probes is what the library has in its place (ef, nprobe). Messages and exclusions are taken into
    account by asking for as many labels more and scoring again.
    """

    def __init__(self, rows: ArrayLike, backend: Any = "hnswlib", *, threads: int = 1, seed: int = 0) -> None:
        self._rows = as_rows(rows).copy()
        if not self._rows.size:
            raise ModelError("an index needs at least one row and one column")
        self.shape = (int(self._rows.shape[0]), int(self._rows.shape[1]))
        if backend not in BACKENDS if isinstance(backend, str) else not callable(backend):
            raise SettingsError(f"backend must be one of {', '.join(BACKENDS)}, or a function, not {backend!r}")
        check_seed(seed)
        check_threads(threads, "threads")
        make = BACKENDS[backend] if isinstance(backend, str) else backend
        try:
            self.backend: Backend = make(self._rows, threads, seed)
        except ImportError as error:
            package = "faiss-cpu" if error.name == "faiss" else '"fginfer[search]"'
            raise SettingsError(f"{error.name} is not installed: pip install {package}") from None

    def set_rows(self, labels: ArrayLike, rows: ArrayLike) -> None:
        """Row labels[i] becomes rows[i]."""
        which, table = as_labels(labels, self.shape[0]), as_rows(np.atleast_2d(rows), self.shape[1])
        if len(which) != len(table):
            raise ModelError(f"{len(which)} labels, but {len(table)} rows")
        last = np.unique(which[::-1], return_index=True)[1]  # the last counts of a label that is listed twice
        which, table = which[::-1][last], table[::-1][last]
        self._rows[which] = table
        self.backend.set_rows(np.ascontiguousarray(which), np.ascontiguousarray(table))

    def set_entries(self, labels: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Entry columns[i] of row labels[i] becomes values[i]; the library gets the whole rows anew."""
        which, where, new = self._entries(labels, columns, values)
        changed, at = np.unique(which, return_inverse=True)
        table = self._rows[changed]
        table[at, where] = new
        self.set_rows(changed, table)

    def rows(self, labels: ArrayLike | None = None) -> Floats:
        """The rows as they are now."""
        return self._rows.copy() if labels is None else self._rows[as_labels(labels, self.shape[0])]

    def _exact(self, x: Floats, k: int) -> NDArray[np.int32]:
        scores = x @ self._rows.T
        return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)

    def _search(
        self,
        x: Floats,
        k: int,
        probes: int | None,
        messages: Messages | None,
        excluded: Lists | None,
        candidates: int | None = None,
    ) -> SearchAnswers:
        if candidates is not None:
            raise SettingsError("candidates is for SearchIndex; libraries have probes")
        sizes = [np.diff(part[0]).max(initial=0) for part in (messages, excluded) if part is not None]
        found = self.backend.query(x, min(k + int(sum(sizes)), self.shape[0]), probes)
        labels, values = np.full((len(x), k), -1, np.int32), np.full((len(x), k), -inf)
        for i, row in enumerate(found):
            which = row[row >= 0]
            message = _part(messages, i)
            which = np.union1d(which, message[0])
            if excluded is not None:
                which = np.setdiff1d(which, excluded[1][excluded[0][i] : excluded[0][i + 1]])
            scores = (self._rows[which] @ x[i]).astype(np.float64)
            scores[np.isin(which, message[0])] -= message[1][np.isin(message[0], which)]
            best = np.lexsort((which, -scores))[:k]
            labels[i, : len(best)], values[i, : len(best)] = which[best], scores[best]
        return labels, values, np.zeros(len(x), np.uint8)


def _part(messages: Messages | None, i: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if messages is None:
        return np.zeros(0, np.int32), np.zeros(0)
    part = slice(messages[0][i], messages[0][i + 1])
    return messages[1][part], messages[2][part]
