"""Layer: MAP inference as a part of something that learns, on arrays of numpy or tensors of torch, in batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import ModelError, SettingsError
from fginfer.nn.maps import Report
from fginfer.nn.scores import Gradients, Loss, Scores, Shapes, check_labels, check_scores, rows_of_moments
from fginfer.nn.structure import Reals, Structure
from fginfer.nn.work import NOISES, Work
from fginfer.options import check_number, check_whole

# Operators of torch know a layer by its number: they take tensors and plain values only.
LAYERS: WeakValueDictionary[int, Layer] = WeakValueDictionary()
_numbers = count()


@dataclass(frozen=True)
class Answer:
    """Marginals, and the way back through them."""

    marginals: Reals
    _layer: Layer
    _shapes: Shapes
    _back: Any

    def backward(self, gradient: ArrayLike) -> Gradients:
        """The gradients of a loss whose derivative with respect to the marginals is given, in their shape."""
        given = np.asarray(gradient, np.float64)
        if given.shape != self.marginals.shape:
            raise ModelError(f"the gradient must have the shape {self.marginals.shape}, not {given.shape}")
        if not np.isfinite(given).all():
            raise ModelError("the gradient must be finite")
        return self._shapes.gradients(self._back(given.reshape(-1, self._layer.structure.n_labels)))


class Layer:
    """Answers and losses for batches of scores that share a structure.

    structure       a Structure
    method          how best labelings are found: a name of fginfer.available_methods(), "elimination" (all items at
                    once), or None, which chooses elimination where its tables are small, else auto
    threads         how many items at a time
    tolerance       of SparseMAP's residuals
    max_iterations  of SparseMAP
    settings        of fginfer.solve for best labelings: time_limit, gap, seed ...

    Scores are unaries (..., variables, labels) or (..., labels of all variables), and tables (..., tables, labels,
    labels) or (..., entries of all tables), or weights (..., factors) where the structure knows its tables. Tables and
    weights may lack the axes of the batch: then all items share them. With torch tensors, tensors come back, and
    gradients flow; with numpy arrays losses are a Loss, maps an Answer with `backward`.

    `keys`, a whole number an item, say which item it is: what is found for it is where the next call begins.

    >>> layer = Layer(Structure.chain(3, 2))
    >>> layer.labels([[0.0, 2.0], [0.5, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1, 1, 1]
    """

    def __init__(
        self,
        structure: Structure,
        *,
        method: str | None = None,
        threads: int = 1,
        tolerance: float = 1e-6,
        max_iterations: int = 10_000,
        **settings: Any,
    ) -> None:
        if not isinstance(structure, Structure):
            raise SettingsError(f"Layer takes a Structure, not {type(structure).__name__}")
        for name, value in (("threads", threads), ("max_iterations", max_iterations)):
            check_whole(name, value)
            if value < 1:
                raise SettingsError(f"{name} must be at least 1, not {value}")
        check_number("tolerance", tolerance, "a positive number")
        if not tolerance > 0:
            raise SettingsError(f"tolerance must be a positive number, not {tolerance}")
        self.structure = structure
        self.work = Work(structure, method, threads, tolerance, max_iterations, settings)
        self._calls = count()
        self.number = next(_numbers)
        LAYERS[self.number] = self

    def __reduce__(self) -> Any:
        """A copy has found nothing yet."""
        w = self.work
        given = {"method": w.method, "threads": w.threads, "tolerance": w.tolerance, "max_iterations": w.max_iterations}
        return _restore, (self.structure, given | w.settings)

    def __repr__(self) -> str:
        return f"<Layer: {self.structure!r}>"

    @property
    def report(self) -> Report:
        """How the last call went."""
        return self.work.report

    def forget(self) -> None:
        """What was found for keys is let go."""
        self.work.labels_memory.found.clear()
        self.work.sparse_memory.found.clear()

    # -- best labelings ----------------------------------------------------------------------------------------

    def labels(self, unaries: Any, tables: Any = None, weights: Any = None, *, keys: Any = None) -> Any:
        """The best labelings, (..., variables)."""
        if _is_tensor(unaries, tables, weights):
            return _torch().labels(self, unaries, tables, weights, keys)
        scores, shapes = self._scores(unaries, tables, weights)
        found = self.work.best(scores, _keys(keys, shapes.lead))
        return found.reshape(*shapes.lead, self.structure.n_variables)

    # -- losses ------------------------------------------------------------------------------------------------

    def hinge(
        self,
        truth: Any,
        unaries: Any,
        tables: Any = None,
        weights: Any = None,
        *,
        cost: float | ArrayLike = 1.0,
        keys: Any = None,
    ) -> Any:
        """The structured hinge loss: the most by which another labeling scores above the truth, plus what it costs.

        cost  of a wrong label: a number, or one for each variable. The gradient is a subgradient, exact where the best
              labeling is (see `report`).
        """
        return self._loss(
            "hinge",
            truth,
            unaries,
            tables,
            weights,
            keys,
            {"cost": cost if isinstance(cost, int | float) else np.asarray(cost, np.float64).tolist()},
        )

    def perceptron(self, truth: Any, unaries: Any, tables: Any = None, weights: Any = None, *, keys: Any = None) -> Any:
        """The structured perceptron's loss: the best score less that of the truth."""
        return self._loss("hinge", truth, unaries, tables, weights, keys, {"cost": 0.0})

    def perturbed_loss(
        self,
        truth: Any,
        unaries: Any,
        tables: Any = None,
        weights: Any = None,
        *,
        samples: int = 10,
        sigma: float = 1.0,
        noise: str = "gumbel",
        seed: int | None = None,
        keys: Any = None,
    ) -> Any:
        """The Fenchel-Young loss of perturbed maxima (Berthet et al. 2020): its gradient is the mean of the best
        labelings under noise of size sigma on the unaries, less the truth.

        seed  of the noise; None: other noise at each call
        """
        options = self._noise(samples, sigma, noise, seed)
        return self._loss("perturbed", truth, unaries, tables, weights, keys, options)

    def sparse_loss(
        self, truth: Any, unaries: Any, tables: Any = None, weights: Any = None, *, keys: Any = None
    ) -> Any:
        """The Fenchel-Young loss of LP-SparseMAP: 0 where the truth has a margin."""
        return self._loss("sparse", truth, unaries, tables, weights, keys, {})

    def crf_loss(self, truth: Any, unaries: Any, tables: Any = None, weights: Any = None) -> Any:
        """-log P(truth) of the CRF with these scores, exactly; SolverError where elimination does not fit."""
        if _is_tensor(unaries, tables, weights):
            return _torch().crf_loss(self, truth, unaries, tables, weights)
        return self._loss("crf", truth, unaries, tables, weights, None, {})

    # -- maps --------------------------------------------------------------------------------------------------

    def sparsemap(self, unaries: Any, tables: Any = None, weights: Any = None, *, keys: Any = None) -> Any:
        """Sparse marginals: max over the local polytope of the score less half the squared norm of the marginals."""
        if _is_tensor(unaries, tables, weights):
            return _torch().sparsemap(self, unaries, tables, weights, keys)
        scores, shapes = self._scores(unaries, tables, weights)
        found = self.work.sparsemap(scores, _keys(keys, shapes.lead))
        return self._answer(found.labels, shapes, lambda g: self.work.sparsemap_back(scores, found, g))

    def perturbed(
        self,
        unaries: Any,
        tables: Any = None,
        weights: Any = None,
        *,
        samples: int = 10,
        sigma: float = 1.0,
        noise: str = "gumbel",
        strength: float = 10.0,
        seed: int | None = None,
        keys: Any = None,
    ) -> Any:
        """The mean of best labelings under noise, with the gradient of implicit MLE (Niepert et al. 2021): how far the
        same samples move when the scores go `strength` times the loss's derivative downhill, divided by it."""
        options = self._noise(samples, sigma, noise, seed)
        return self._interpolated(unaries, tables, weights, keys, options, strength)

    def blackbox(
        self, unaries: Any, tables: Any = None, weights: Any = None, *, strength: float = 10.0, keys: Any = None
    ) -> Any:
        """The best labeling as zeros and ones, with the gradient of a piecewise linear interpolation (Vlastelica et al.
        2020): the larger the strength, the farther apart the two solves it compares."""
        options = self._noise(1, 0.0, "none", 0)
        return self._interpolated(unaries, tables, weights, keys, options, strength)

    def marginals(self, unaries: Any, tables: Any = None, weights: Any = None) -> Any:
        """P(variable = label) of the CRF with these scores, exactly; SolverError where elimination does not fit. With
        tensors they have gradients; with arrays there is no way back (crf_loss has its own)."""
        if _is_tensor(unaries, tables, weights):
            return _torch().marginals(self, unaries, tables, weights)
        scores, shapes = self._scores(unaries, tables, weights)
        return self._shaped(self.work.marginals(scores)[1].labels, shapes.lead)

    def log_partition(self, unaries: Any, tables: Any = None, weights: Any = None) -> Any:
        """log Z of each item; with arrays a Loss, whose gradients are the marginals."""
        if _is_tensor(unaries, tables, weights):
            return _torch().log_partition(self, unaries, tables, weights)
        scores, shapes = self._scores(unaries, tables, weights)
        log_z, found = self.work.marginals(scores)
        return Loss(log_z.reshape(shapes.lead), shapes.gradients(rows_of_moments(scores, found)))

    # -- small helpers -----------------------------------------------------------------------------------------

    def _scores(self, unaries: Any, tables: Any, weights: Any) -> tuple[Scores, Shapes]:
        return check_scores(self.structure, unaries, tables, weights)

    def _loss(
        self, kind: str, truth: Any, unaries: Any, tables: Any, weights: Any, keys: Any, options: dict[str, Any]
    ) -> Any:
        if _is_tensor(unaries, tables, weights):
            return _torch().loss(self, kind, truth, unaries, tables, weights, keys, options)
        scores, shapes = self._scores(unaries, tables, weights)
        true = check_labels(self.structure, shapes.lead, truth)
        values, rows = run_loss(self.work, kind, scores, true, _keys(keys, shapes.lead), options)
        return Loss(values.reshape(shapes.lead), shapes.gradients(rows))

    def _interpolated(
        self, unaries: Any, tables: Any, weights: Any, keys: Any, options: dict[str, Any], strength: float
    ) -> Any:
        check_number("strength", strength, "a positive number")
        if not strength > 0:
            raise SettingsError(f"strength must be a positive number, not {strength}")
        if _is_tensor(unaries, tables, weights):
            return _torch().interpolated(self, unaries, tables, weights, keys, options | {"strength": float(strength)})
        scores, shapes = self._scores(unaries, tables, weights)
        known = _keys(keys, shapes.lead)
        mean, found = self.work.interpolated(scores, known, **options)

        def back(gradient: Reals) -> Any:
            return self.work.interpolated_back(scores, found, gradient, known, strength, **options)

        return self._answer(mean, shapes, back)

    def _noise(self, samples: int, sigma: float, noise: str, seed: int | None) -> dict[str, Any]:
        check_whole("samples", samples)
        check_number("sigma", sigma, "a number >= 0")
        if samples < 1 or not sigma >= 0:
            raise SettingsError(f"there must be a sample, and sigma >= 0; not {samples} samples of sigma {sigma}")
        if noise not in NOISES:
            raise SettingsError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}")
        if seed is not None:
            check_whole("seed", seed)
        drawn = next(self._calls) if seed is None else seed
        return {"samples": int(samples), "sigma": float(sigma), "noise": noise, "seed": int(drawn)}

    def _answer(self, rows: Reals, shapes: Shapes, back: Any) -> Answer:
        return Answer(self._shaped(rows, shapes.lead), self, shapes, back)

    def _shaped(self, rows: Reals, lead: tuple[int, ...]) -> Reals:
        labels = self.structure.uniform
        item = (self.structure.n_labels,) if labels is None else (self.structure.n_variables, labels)
        return rows.reshape(*lead, *item)


def _restore(structure: Structure, settings: dict[str, Any]) -> Layer:
    return Layer(structure, **settings)


def run_loss(
    work: Work, kind: str, scores: Scores, truth: NDArray[np.int32], keys: Sequence[int | None], options: dict[str, Any]
) -> Any:
    """The loss of that name: its values, and a row of gradients an item."""
    if kind == "hinge":
        return work.hinge(scores, truth, keys, options["cost"])
    if kind == "perturbed":
        return work.perturbed_loss(scores, truth, keys, **options)
    return work.sparse_loss(scores, truth, keys) if kind == "sparse" else work.crf_loss(scores, truth)


def _keys(keys: Any, lead: tuple[int, ...]) -> list[int | None]:
    n = int(np.prod(lead, dtype=np.int64))
    if keys is None:
        return [None] * n
    given = np.asarray(keys)
    if given.shape != lead or (given.size and given.dtype.kind not in "iu"):
        raise SettingsError(f"keys must be whole numbers, one for each item, of shape {lead}, not {given.shape}")
    return [int(k) for k in given.reshape(-1).tolist()]


def _is_tensor(*scores: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a tensor has imported it
    return torch is not None and any(isinstance(s, torch.Tensor) for s in scores)


def _torch() -> Any:
    from fginfer.nn import tensors

    return tensors
