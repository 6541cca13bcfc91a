"""KernelStructuredSVM: structured prediction with a kernel on the tokens' features, for small data."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, SettingsError
from fginfer.learn.base import StructuredEstimator
from fginfer.learn.data.examples import Encoded, Reals
from fginfer.learn.data.magnitudes import LARGEST, are_sound
from fginfer.learn.files import storage
from fginfer.learn.oracle import Oracle
from fginfer.learn.run.loop import LearnPoint
from fginfer.options import is_number

Kernel = Callable[[Reals, Reals], Any]
ROWS = 1024  # rows of new data at a time: their kernel values never fill the memory


class KernelStructuredSVM(StructuredEstimator):
    """As StructuredSVM, with scores that are linear in a kernel instead of in the features.

    The score of label y at a token x is the sum over tokens t of ``dual_coef_[t, y] * kernel(x, tokens_[t])``; weights
    on pairs of labels stay linear. Training factors the kernel matrix, K = F F', and runs any solver on the rows of F
    as features: the same objective as in the dual (Lacoste-Julien et al. 2013, B.5), at the speed of the core. Time is
    cubic and memory quadratic in the number of training tokens.

    Parameters
    ----------
    model : "chain", "graph", "multilabel" or "multiclass".
    kernel : "rbf", "linear", or a function of two arrays (n, d) and (m, d) that gives an (n, m) array, symmetric and
        positive semidefinite. fit_intercept adds 1 to it.
    gamma : width of "rbf", exp(-gamma * |x - x'|^2); None is one over the number of features.
    All others are those of StructuredSVM.

    After `fit`: ``tokens_`` (CSR: training tokens whose kernel values span those of all), ``dual_coef_`` (tokens_ x
    labels), ``pairwise_`` (tables), ``weights_`` (dual_coef_ and pairwise_ in one vector), and ``classes_``,
    ``trace_``, ``status_``, ``n_iter_``, ``primal_``, ``dual_``, ``gap_`` as in StructuredSVM.

    >>> from fginfer.learn import KernelStructuredSVM
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> KernelStructuredSVM("multiclass", gamma=3.0, C=10.0).fit(X, y).predict(X).tolist()
    [0, 1, 1, 0]
    """

    models: ClassVar[tuple[str, ...]] = ("chain", "graph", "multilabel", "multiclass")
    kind: ClassVar[str] = "kernel"

    tokens_: sp.csr_matrix

    def __init__(
        self,
        model: str = "chain",
        kernel: str | Kernel = "rbf",
        gamma: float | None = None,
        solver: str = "auto",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        fit_intercept: bool = True,
        pairwise: bool = True,
        loss: Any = None,
        batch_size: int = 1,
        oracle: Oracle | None = None,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            model, solver, C, tol, max_iter, time_limit, n_jobs, random_state, verbose, fit_intercept, pairwise, loss,
            batch_size, oracle, eval_every, callback, checkpoint, checkpoint_interval, warm_start, solver_options,
        )  # fmt: skip
        self.kernel = kernel
        self.gamma = gamma

    # ---- features of training tokens

    def _check_settings(self) -> None:
        super()._check_settings()
        if not callable(self.kernel) and self.kernel not in ("rbf", "linear"):
            raise SettingsError(f"kernel must be rbf, linear or a function, not {self.kernel!r}")
        if self.gamma is not None and not (is_number(self.gamma) and 0 < self.gamma < np.inf):
            raise SettingsError(f"gamma must be None or a positive number, not {self.gamma!r}")

    def _learn_rows(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        n = rows.shape[0]
        if 40.0 * n * n > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):  # values, factor, copies of both
            raise DataError(f"kernels of {n} tokens take {40e-9 * n * n:.0f} GB of memory, more than there is")
        gram = self._values(rows, rows)
        if callable(self.kernel) and not np.allclose(gram, gram.T, rtol=0, atol=1e-8 * np.abs(gram).max()):
            raise DataError("the kernel is not symmetric: kernel(a, b) and kernel(b, a).T differ")
        factor, order = factorise(gram)
        basis = order[: factor.shape[1]]
        self._basis: tuple[sp.csr_matrix, Reals] | None = (rows[basis], factor[basis])
        return sp.csr_matrix(factor)

    def _keep(self, weights: Reals) -> Reals:
        """w = F' alpha with alpha on the basis only: there F is a triangle."""
        assert self._basis is not None
        self.tokens_, triangle = self._basis
        self._basis = None
        unary, tables = self._split(weights, len(triangle))
        coef = solve_triangular(triangle, unary, trans="T", lower=True)
        return np.concatenate([coef.ravel(), tables.ravel()])

    def _values(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Reals:
        """(rows of a) x (rows of b) kernel values, plus 1 with an intercept."""
        if b.shape[0] == 0:  # all kernel values of the training were 0: no token was needed
            return np.zeros((a.shape[0], 0))
        if callable(self.kernel) or b.nnz > 0.1 * b.shape[0] * b.shape[1]:
            a, b = (a.toarray(),) * 2 if a is b else (a.toarray(), b.toarray())
        if callable(self.kernel):
            values = self.kernel(a, b)
        else:
            values = linear_kernel(a, b) if self.kernel == "linear" else rbf_kernel(a, b, self.gamma)
        try:
            out = np.asarray(values, np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"the kernel does not give numbers ({error})") from None
        if out.shape != (a.shape[0], b.shape[0]) or not are_sound(out):
            raise DataError(
                f"the kernel must give finite values of at most {LARGEST:g} in the shape {(a.shape[0], b.shape[0])}"
            )
        return out + 1.0 if self.fit_intercept else out

    # ---- what was learned

    def _apply(self, data: Encoded) -> Reals:
        """Token t gets the one feature t, so that the unary weights are the tokens' scores."""
        coef, tables = self._split(self.weights_, self._width())
        parts = (data.rows[at : at + ROWS] for at in range(0, data.rows.shape[0], ROWS))
        scores = np.concatenate([self._values(part, self.tokens_) @ coef for part in parts])
        data.rows = sp.identity(len(scores), format="csr")
        return np.concatenate([scores.ravel(), tables.ravel()])

    def _width(self) -> int:
        return int(self.tokens_.shape[0])

    @property
    def dual_coef_(self) -> Reals:
        """(tokens, labels)."""
        check_is_fitted(self, "weights_")
        out: Reals = self._split(self.weights_, self._width())[0]
        return out

    # ---- files

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(header for JSON, arrays): the fitted model as plain data."""
        header, arrays = super().pack()
        header["parameters"].setdefault("kernel", None)  # a function
        t = self.tokens_
        arrays.update(token_values=t.data, token_columns=t.indices, token_begin=t.indptr)
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], kernel: Kernel | None = None) -> KernelStructuredSVM:
        """Reads a model written by :meth:`save`; a kernel that is a function is not in the file and must be given."""
        header, arrays = storage.read(path)
        parameters = header.get("parameters")
        if (isinstance(parameters, dict) and parameters.get("kernel", "") is None) != (kernel is not None):
            what = "needs the function it was trained with" if kernel is None else "has a kernel of its own"
            raise SettingsError(f"{path}: the model {what}, see load(path, kernel)")
        return cls._from_file(path, header, arrays, **({} if kernel is None else {"kernel": kernel}))

    def _unpack_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        parts = arrays["token_values"], arrays["token_columns"], arrays["token_begin"]
        begin = parts[2]
        if any(a.ndim != 1 for a in parts) or any(a.dtype.kind != "i" or (a < 0).any() for a in parts[1:]):
            raise DataError("its tokens are no compressed rows")
        if not len(begin) or begin[0] != 0 or begin[-1] != len(parts[1]) or (begin[1:] < begin[:-1]).any():
            raise DataError("its tokens are out of order")
        self.tokens_ = sp.csr_matrix(parts, shape=(len(parts[2]) - 1, self.n_features_in_))
        self.tokens_.check_format(full_check=True)
        if self.tokens_.dtype != np.float64 or not np.isfinite(self.tokens_.data).all():
            raise DataError("its tokens are not finite numbers")


def factorise(gram: Reals) -> tuple[Reals, NDArray[np.intp]]:
    """(F, order) with gram = F F' to a relative 1e-12, by Cholesky with pivots. F has a column for each of the first
    tokens in the order, the basis, on which it is lower triangular."""
    scale = float(gram.diagonal().max())
    lower, order, rank, _ = lapack.dpstrf(gram, lower=1, tol=1e-12 * scale)
    order = order - 1
    lower = np.tril(lower)[:, :rank]
    rest = order[rank:]
    left = gram[np.ix_(rest, rest)] - lower[rank:] @ lower[rank:].T
    if not np.abs(left).max(initial=0.0) <= 1e-8 * scale:
        raise DataError("the kernel is not positive semidefinite on the training tokens")
    factor = np.empty_like(lower)
    factor[order] = lower
    return factor, order
