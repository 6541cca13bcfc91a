"""Libraries for nearest neighbours behind :class:`fginfer.search.BackendIndex`: hnswlib and faiss, where installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fginfer.core.search import Floats


class Backend(Protocol):
    """What a library has to offer: it is asked for more labels than wanted, and its answers are scored again here."""

    def set_rows(self, labels: NDArray[np.int32], rows: Floats) -> None: ...

    def query(self, x: Floats, k: int, probes: int | None) -> NDArray[Any]:
        """(queries, k) labels by descending inner product; -1 where it has none."""
        ...


class HnswBackend:
    """hnswlib: a navigable small-world graph on inner products. probes is its ef."""

    def __init__(self, rows: Floats, threads: int = 1, seed: int = 0, M: int = 16, ef_construction: int = 200) -> None:
        library: Any = import_module("hnswlib")
        self._graph = library.Index(space="ip", dim=rows.shape[1])
        self._graph.init_index(max_elements=len(rows), M=M, ef_construction=ef_construction, random_seed=seed + 1)
        self._graph.set_num_threads(threads)
        self.set_rows(np.arange(len(rows), dtype=np.int32), rows)

    def set_rows(self, labels: NDArray[np.int32], rows: Floats) -> None:
        self._graph.add_items(rows, labels)

    def query(self, x: Floats, k: int, probes: int | None) -> NDArray[Any]:
        self._graph.set_ef(max(k, probes or 64))
        labels: NDArray[Any] = self._graph.knn_query(x, k)[0]
        return labels.astype(np.int64)


class FaissBackend:
    """faiss: an inverted file over coarse clusters. probes is its nprobe."""

    def __init__(self, rows: Floats, threads: int = 1, seed: int = 0, lists: int | None = None) -> None:
        faiss: Any = import_module("faiss")
        faiss.omp_set_num_threads(threads)
        n, d = rows.shape
        self._quantizer = faiss.IndexFlatIP(d)
        lists = lists or max(1, min(int(4 * np.sqrt(n)), n // 40))
        self._file = faiss.IndexIVFFlat(self._quantizer, d, lists, faiss.METRIC_INNER_PRODUCT)
        self._file.cp.seed = seed + 1
        self._file.train(np.ascontiguousarray(rows))
        self.set_rows(np.arange(n, dtype=np.int32), rows)

    def set_rows(self, labels: NDArray[np.int32], rows: Floats) -> None:
        if self._file.ntotal:
            self._file.remove_ids(labels.astype(np.int64))
        self._file.add_with_ids(np.ascontiguousarray(rows), labels.astype(np.int64))

    def query(self, x: Floats, k: int, probes: int | None) -> NDArray[Any]:
        self._file.nprobe = probes or 16
        labels: NDArray[Any] = self._file.search(np.ascontiguousarray(x), k)[1]
        return labels


BACKENDS: dict[str, Any] = {"hnswlib": HnswBackend, "faiss": FaissBackend}
