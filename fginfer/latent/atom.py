"""The best binary atom: max over z in {0,1}^N of |F'z|^2, with an upper bound. A MAP problem on a complete graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.blas import on_one_blas_thread
from fginfer.core.clock import Late, never
from fginfer.core.latent import AtomProblem, Bits, Reals
from fginfer.errors import DataError, SettingsError
from fginfer.graph import FactorGraph
from fginfer.options import check_whole, is_number
from fginfer.solve import solve


class AtomMethod(NamedTuple):
    """What a method of find_atom is made of."""

    relaxes: bool  # starts from hyperplanes through the relaxation
    searches: bool  # random starts, and tabu from the best
    proves: bool = False  # then the MAP engine


METHODS = {
    "relax": AtomMethod(True, False),
    "search": AtomMethod(False, True),
    "both": AtomMethod(True, True),
    "engine": AtomMethod(True, True, proves=True),
}
DENSE_LIMIT = 3000  # columns or rows of a sparse F: beyond it the bound takes no dense matrix, and is weaker
ENGINE_LIMIT = 300  # variables: beyond it a complete graph has more than 45,000 factors, and no hope of a proof
MOST_ENTRIES = 1 << 28  # entries of all unit vectors together
_MIXING_SWEEPS = 200  # at most; on random F the value stands still to 1e-5 after some 30


@dataclass(frozen=True)
class Atom:
    """A vector of zeros and ones, its value |F'z|^2, and (None: not asked for) an upper bound on every such value.

    `relaxation` is the value of the semidefinite relaxation where it was solved; `proven` says that value and bound
    meet up to rounding.
    """

    z: Bits
    value: float
    bound: float | None
    relaxation: float | None
    method: str

    @property
    def ratio(self) -> float | None:
        """value / bound: how much of the optimum this is at least. The theory of the relaxation promises 3/5."""
        if self.bound is None:
            return None
        return 1.0 if self.bound == 0 else self.value / self.bound

    @property
    def proven(self) -> bool:
        return self.bound is not None and self.bound <= self.value * (1 + 1e-9)


@on_one_blas_thread
def find_atom(
    factor: Any,
    method: str = "both",
    *,
    n_roundings: int = 100,
    n_starts: int = 32,
    tabu_steps: int | None = None,
    mixing_rank: int = 0,
    tol: float = 1e-5,
    bound: bool = True,
    time_limit: float = 10.0,
    seed: int = 0,
    threads: int = 1,
) -> Atom:
    """max over z in {0,1}^N of |F'z|^2 = z'Cz with C = FF', which is never formed.

    Parameters
    ----------
    factor : F, N x r, dense or sparse.
    method : "relax", the papers' way: a semidefinite relaxation by coordinate ascent on unit vectors, random
        hyperplanes, then flips. "search": flips and tabu search from random starts. "both": the two starts together,
        tabu from the best of them. "engine": then the MAP engine of this package, whose bound may prove the atom best
        (N <= 300).
    n_roundings : hyperplanes.
    n_starts : random starts.
    tabu_steps : None is 2 N for "search", "both" and "engine".
    mixing_rank : dimensions of the unit vectors; 0 is ceil(sqrt(2 N)) + 1, from where on local optima are global, or
        from 330,000 rows on what fits into 2 GB. Bounds hold with any.
    tol : the relaxation ends when a sweep gains less than this, relatively.
    bound : False leaves out the upper bound (and, with "search", the relaxation behind it).
    time_limit : of the engine, in seconds.
    seed, threads : the answer depends on the seed, never on the number of threads.

    Returns
    -------
    Atom : the vector, its value, and the bound.

    Examples
    --------
    >>> F = np.array([[1.0, 0.0], [0.5, -1.0], [-2.0, 0.5], [0.3, 0.2]])
    >>> atom = find_atom(F)
    >>> atom.z.tolist(), round(atom.value, 6), round(atom.ratio, 3)
    ([0, 0, 1, 0], 4.25, 1.0)
    """
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    counts = {"tabu_steps": 0 if tabu_steps is None else tabu_steps, "mixing_rank": mixing_rank, "seed": seed}
    positive = {"n_roundings": n_roundings, "n_starts": n_starts, "threads": threads}
    _check_settings(counts, positive, {"tol": tol, "time_limit": time_limit}, bound)
    factor, unit = _scaled(check_factor(factor))
    n = factor.shape[0]
    way = METHODS[method]
    if way.proves and n > ENGINE_LIMIT:
        raise SettingsError(f"the engine takes up to {ENGINE_LIMIT} rows, not {n}; use method='both'")
    problem = AtomProblem(factor, threads=threads)
    relaxation = upper = None
    starts = np.empty((0, n), np.uint8)
    if way.relaxes or bound:
        relaxation = relax(problem, mixing_rank, seed, tol)
    if way.relaxes:
        starts = problem.mix_round(n_roundings, seed + 1)
    if way.searches:
        starts = np.concatenate([starts, random_starts(n, n_starts, seed + 2)])
    values = problem.search(starts, seed=seed)
    if way.searches:
        values, starts = _tabu(problem, values, starts, 2 * n if tabu_steps is None else tabu_steps, seed)
    best = int(np.argmax(values))
    z, value = starts[best].copy(), problem.value(starts[best])
    if bound:
        upper = max(value, relaxation_bound(factor, problem.mix_dual()))
    if way.proves:
        z, value, upper = _engine(factor, z, value, upper, time_limit, seed)
    back = unit * unit
    upper, relaxation = (None if v is None else v * back for v in (upper, relaxation))
    return Atom(z, value * back, upper, relaxation, method)


def _check_settings(counts: dict[str, Any], positive: dict[str, Any], limits: dict[str, Any], bound: Any) -> None:
    for least, given in enumerate((counts, positive)):
        for name, count in given.items():
            check_whole(name, count, least, 63)
    for name, limit in limits.items():
        if not is_number(limit) or not limit >= 0:
            raise SettingsError(f"{name} must be a number of at least 0, not {limit!r}")
    if not isinstance(bound, (bool, np.bool_)):
        raise SettingsError(f"bound must be True or False, not {bound!r}")


def check_factor(factor: Any) -> Any:
    """F as an array or CSR matrix of finite numbers."""
    if not sp.issparse(factor):
        factor = np.asarray(factor)
    if factor.dtype.kind not in "biuf":
        raise DataError(f"F must be real numbers, not of the type {factor.dtype}")
    if sp.issparse(factor):
        rows = sp.csr_matrix(factor, dtype=np.float64)
        values = rows.data
    else:
        rows = values = np.asarray(factor, np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"F must be a matrix with rows and columns, not of shape {rows.shape}")
    if not np.isfinite(values).all():
        raise DataError("F has entries that are NaN or infinite")
    return rows


def _scaled(factor: Any) -> tuple[Any, float]:
    """F over a power of two (which rounds nothing), so that its largest entry is near 1, and that power."""
    values = factor.data if sp.issparse(factor) else factor
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return factor, 1.0
    if largest * max(factor.shape) > 1e140:
        raise DataError(f"F has entries as large as {largest:.1e}, too large to be squared")
    unit = float(2.0 ** np.floor(np.log2(largest)))
    return factor / unit, unit


def random_starts(n: int, count: int, seed: int) -> Bits:
    """Rows of fair coin flips."""
    return np.random.default_rng(seed).integers(0, 2, (count, n), dtype=np.uint8)


def relax(problem: AtomProblem, rank: int, seed: int, tol: float, late: Late = never) -> float:
    """Solves the relaxation, or ends when it is late: any point of it gives a bound. Its value. A sweep at a time, so
    that Ctrl-C is heard. rank 0: see find_atom."""
    if rank == 0:
        rank = min(int(np.ceil(np.sqrt(2 * problem.n))) + 1, max(32, MOST_ENTRIES // (problem.n + 1)))
    problem.mix_start(rank, seed)
    value = problem.mix_run(1)
    for _ in range(_MIXING_SWEEPS):
        before, value = value, problem.mix_run(1)
        if value - before <= tol * value or late():
            break
    return value


def relaxation_bound(factor: Any, y: Reals) -> float:
    """An upper bound on |F'z|^2 from multipliers y > 0 of the relaxation, scaled until they are feasible.

    With G = [1'F; F] and t the largest eigenvalue of G' diag(1/y) G, diag(t y) - GG' is positive semidefinite, so that
    every vector of +-1 has a value of at most t sum(y), and |F'z|^2 is a fourth of such a value.
    """
    sparse = sp.issparse(factor)
    total = np.asarray(factor.sum(0), np.float64).reshape(1, -1)
    rows: Any = sp.vstack([sp.csr_matrix(total), factor]).tocsr() if sparse else np.vstack([total, factor])
    used = np.asarray(rows.multiply(rows).sum(1) if sparse else np.einsum("ij,ij->i", rows, rows)).ravel() > 0
    if not used.any():
        return 0.0
    rows, y = rows[used], y[used]
    y = np.maximum(y, 1e-8 * y.max())
    scaled = sp.diags(1 / np.sqrt(y)) @ rows if sparse else rows / np.sqrt(y)[:, None]
    if sparse and min(scaled.shape) > DENSE_LIMIT:
        t = _perron_bound(abs(scaled))
    else:
        gram: Any = scaled.T @ scaled if scaled.shape[1] <= len(y) else scaled @ scaled.T
        gram = gram.toarray() if sparse else gram
        t = float(scipy.linalg.eigvalsh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])[0])
    # Rounding of the product and of the eigenvalue: a few units in the last place a term, added generously.
    bound: float = t * float(y.sum()) / 4 * (1 + 1e-14 * (rows.shape[0] + rows.shape[1]))
    return bound


def _perron_bound(matrix: Any, steps: int = 20) -> float:
    """At least the largest eigenvalue of A'A, for A >= 0, and so of B'B for every |B| = A: the largest ratio of
    (A'Av)_i to v_i for any v > 0 (Collatz, Wielandt)."""
    v = np.ones(matrix.shape[1])
    least = np.inf
    for _ in range(steps):
        image = matrix.T @ (matrix @ v)
        least = min(least, float((image / v).max()))
        v = image / max(float(image.max()), 1e-300)
        v = np.maximum(v, 1e-6)
    return least


def _tabu(problem: AtomProblem, values: Reals, starts: Bits, steps: int, seed: int) -> tuple[Reals, Bits]:
    """Tabu search from the few best distinct starts; all starts with their values, the improved ones first."""
    if steps == 0:
        return values, starts
    distinct = {starts[k].tobytes(): k for k in np.argsort(values)}  # the last of equal ones, so any
    chosen = sorted(distinct.values(), key=lambda k: -values[k])[:4]
    improved = starts[chosen]
    better = problem.search(improved, tabu_steps=steps, candidates=128, seed=seed + 3)
    return np.concatenate([better, values]), np.concatenate([improved, starts])


def atom_graph(factor: NDArray[np.float64]) -> FactorGraph:
    """The MAP problem whose score is |F'z|^2: binary variables, a complete graph of rewards for joint ones."""
    C = factor @ factor.T
    n = len(C)
    i, j = np.triu_indices(n, 1)
    used = C[i, j] != 0
    i, j = i[used], j[used]
    unary = np.stack([np.zeros(n), C.diagonal()], axis=1)
    tables = [np.array([[0.0, 0.0], [0.0, value]]) for value in 2 * C[i, j]]
    return FactorGraph.from_arrays([2] * n, unary, np.stack([i, j], axis=1), tables=tables)


def _engine(
    factor: Any, z: Bits, value: float, upper: float | None, time_limit: float, seed: int
) -> tuple[Bits, float, float | None]:
    dense = factor.toarray() if sp.issparse(factor) else factor
    result = solve(atom_graph(dense), warm_start=z.astype(np.int32), time_limit=time_limit, seed=seed, dual=False)
    if result.score is not None and result.labels is not None and result.score > value:
        z = result.labels.astype(np.uint8)
        value = float(((dense.T @ z) ** 2).sum())
    if result.bound is not None and upper is not None:
        upper = max(value, min(upper, result.bound))
    return z, value, upper
