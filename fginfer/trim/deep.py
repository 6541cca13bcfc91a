"""Trimming a trained network: min lambda |W|_1 + loss from the trained weights, until most of them are zero.

Any descent method keeps the loss within eps for lambda <= eps / |W|_1; a stationary point has few non-zeros, whatever
lambda is (at most one for each label of a sample with a non-zero derivative of the loss, where the Jacobian is in
general position), so what matters is an optimiser that reaches one: proximal quasi-Newton (Yan, "Sublinear-time
learning and inference for high-dimensional models", 2018, section 2.3). Where it stalls at kinks, purify.py goes on.

Trained weights lie far from such a point, and a step on all samples costs as much as an epoch on small batches. So
before every sweep over the layers, all of them go some way together by Adam with proximal l1 steps. Adam brings them
near, and the quasi-Newton steps end the noise that keeps weights from zero. Either alone leaves more than twice as many
weights (decision 0016).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.blas import one_blas_thread
from fginfer.core import clock
from fginfer.core.optimise import METHODS, Optimiser, minimise
from fginfer.errors import SettingsError
from fginfer.options import check_whole, is_number
from fginfer.trim.adam import adam
from fginfer.trim.network import Network
from fginfer.trim.views import Trimmable, as_trimmable

logger = logging.getLogger("fginfer")
MOST_SWEEPS = 60  # until a target is reached: lambda has grown out of all proportion by then
TUNING_RATE = 3e-4  # the step of Adam, falling to zero; 1e-3 fits letters too closely
Reals = NDArray[np.float64]


class LayerReport(NamedTuple):
    """One layer: how many weights, how many of them not zero before and after, and the lambda used last."""

    name: str
    size: int
    before: int
    after: int
    lam: float
    objective_before: float
    objective_after: float


@dataclass(frozen=True)
class TrimReport:
    """What was trimmed, and what it cost: loss and accuracy on the samples given."""

    layers: list[LayerReport]
    loss_before: float
    loss_after: float
    accuracy_before: float
    accuracy_after: float
    seconds: float

    @property
    def nonzeros(self) -> int:
        return sum(row.after for row in self.layers)

    @property
    def size(self) -> int:
        return sum(row.size for row in self.layers)

    def __str__(self) -> str:
        lines = [f"{'layer':<16}{'weights':>10}{'before':>10}{'after':>10}{'kept':>9}{'lambda':>11}"]
        for row in self.layers:
            share = row.after / row.size
            lines.append(f"{row.name:<16}{row.size:>10}{row.before:>10}{row.after:>10}{share:>9.2%}{row.lam:>11.2e}")
        lines.append(f"loss {self.loss_before:.5g} -> {self.loss_after:.5g}")
        lines.append(f"accuracy {self.accuracy_before:.4f} -> {self.accuracy_after:.4f}, {self.seconds:.1f} s")
        return "\n".join(lines)


@dataclass(frozen=True)
class Trimmed:
    """A trimmed copy, masks of the weights that are left (by layer name), and the report."""

    network: Any
    masks: dict[str, NDArray[np.bool_]]
    report: TrimReport


def trim(
    network: Any,
    X: Any,
    y: Any,
    *,
    eps: float | None = None,
    lam: float | None = None,
    target: float | None = None,
    layers: Sequence[str] | None = None,
    method: str = "proxqn",
    tol: float = 1e-3,
    max_iter: int = 100,
    sweeps: int = 1,
    epochs: int = 5,
    tune: int = 0,
    growth: float = 2.0,
    seed: int = 0,
    loss: Any = None,
    time_limit: float | None = None,
) -> Trimmed:
    """A copy of `network` with few non-zero weights, trained on (X, y) from the weights it has.

    network  a :class:`Network`, or a torch.nn.Module (`loss`: a function of outputs and y, cross-entropy if None)
    eps      the loss one is willing to lose: lambda of a layer is eps / (number of layers) / |W|_1
    lam      or lambda itself
    target   or the fraction of weights to keep (below 1) or their number, in all layers together. Sweeps go on until no
             more are left; lambda starts from `lam` or `eps` if one is given, else from a tenth of the loss of a
             network that says nothing, and is multiplied by `growth` after a sweep that trimmed less than a fifth of
             what was left, by its square if less than a tenth, by less near the target: while lambda does its work,
             more sweeps lose less than a larger lambda
    layers   names of the layers to trim, in this order; None: all. For a Network these are "0", "1", ..., for a module
             the names of its parameters with two or more dimensions
    method   "proxqn"; "owlqn" and "proxgrad" to compare
    tol, max_iter  of the optimiser, for each layer; sweeps: times that all layers are gone through
    epochs   of Adam with proximal l1 steps on these layers together, before every sweep; 0: the optimiser alone
    tune     epochs of Adam at the end, without lambda, on what is left and the biases, which are left alone otherwise

    A module is copied and comes back in evaluation mode; frozen parameters are left alone, and `loss` must be a mean.
    The objective falls or stays in every step, that of Adam included: what does not lower it on all samples is undone.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 10)); y = (X[:, 0] - X[:, 1] > 0).astype(int)
    >>> net = Network([10, 20, 2], seed=1).fit(X, y, epochs=20)
    >>> small = trim(net, X, y, target=0.2)
    >>> small.report.nonzeros <= 48, small.network.accuracy(X, y) > 0.95
    (True, True)
    """
    model = as_trimmable(network, X, y, loss)
    names = _check(model, eps, lam, target, layers, method, tol, max_iter, sweeps, growth, time_limit)
    for name, value in (("epochs", epochs), ("tune", tune), ("seed", seed)):
        check_whole(name, value, 0, 63)
    with one_blas_thread() if isinstance(network, Network) else nullcontext():
        begin = clock.now()
        deadline = np.inf if time_limit is None else begin + time_limit
        before = model.measure()
        goal = _Goal(model, names, eps, lam, target, before[0])
        how = _Optimiser(method, tol, max_iter, seed, deadline)
        rows = _sweep(model, goal, how, MOST_SWEEPS if goal.wanted is not None else sweeps, epochs, growth)
        rows = {name: _purify(model, row, deadline) for name, row in rows.items()}
        if tune:
            _together(model, dict.fromkeys(names, 0.0), tune, seed, deadline, rate=TUNING_RATE, tuning=True)
        after = model.measure()
        report = TrimReport([rows[n] for n in names], before[0], after[0], before[1], after[1], clock.now() - begin)
        return Trimmed(model.network, {n: model.get(n) != 0 for n in names}, report)


class _Goal:
    """How many weights are wanted (None: what lambda leaves), and the lambda of every layer."""

    def __init__(
        self, model: Trimmable, names: list[str], eps: float | None, lam: float | None, target: float | None,
        loss: float,
    ) -> None:  # fmt: skip
        self.start = {name: model.get(name).copy() for name in names}  # the weights that were given
        self.size = sum(w.size for w in self.start.values())
        self.wanted = None if target is None else int(target * self.size) if target < 1 else int(target)
        self._lam, self._allowed = lam, eps
        if eps is None and target is not None:
            self._allowed = 0.1 * max(loss, _silent_loss(model, names[0]))

    def lambdas(self, factor: float) -> dict[str, float]:
        """By layer, times a factor that grows while too many weights are left."""
        return {name: factor * self._lambda(weights) for name, weights in self.start.items()}

    def _lambda(self, weights: Reals) -> float:
        if self._lam is not None:
            return self._lam
        assert self._allowed is not None
        return self._allowed / len(self.start) / max(float(np.abs(weights).sum()), 1e-300)


class _Optimiser(NamedTuple):
    """How a layer is trimmed, and until when."""

    method: str
    tol: float
    max_iter: int
    seed: int
    deadline: float


def _sweep(
    model: Trimmable, goal: _Goal, how: _Optimiser, sweeps: int, epochs: int, growth: float
) -> dict[str, LayerReport]:
    """Goes through all layers so many times, or until few enough weights are left. The first time is never left out."""
    rows: dict[str, LayerReport] = {}
    factor, left = 1.0, goal.size
    for sweep in range(sweeps):
        if sweep and clock.now() >= how.deadline:
            break
        lams = goal.lambdas(factor)
        if epochs and clock.now() < how.deadline:
            _together(model, lams, epochs, how.seed + sweep, how.deadline)
        for name, lam in lams.items():
            if name in rows and clock.now() >= how.deadline:  # to begin with a layer costs passes over all samples
                rows[name] = rows[name]._replace(after=int(np.count_nonzero(model.get(name))))
            else:
                rows[name] = _trim_layer(model, name, lam, goal.start[name], how)
        if goal.wanted is not None:
            before, left = left, sum(row.after for row in rows.values())
            if left <= goal.wanted:
                break
            factor *= _growth(left, before, goal.wanted, growth)
    return rows


def _growth(left: int, before: int, wanted: int, growth: float) -> float:
    """What lambda is multiplied by after a sweep. Near the target a large step would overshoot (letters, wanted 17,049:
    10,598 left), and weights end about in proportion to 1 / lambda."""
    if left < 0.8 * before:
        return 1.0
    return min(growth if left < 0.9 * before else growth * growth, max(left / max(wanted, 1), math.sqrt(growth)))


def _silent_loss(model: Trimmable, name: str) -> float:
    """The loss with a layer of zeros: what is said then depends on the biases alone."""
    return model.layer(name).value(np.zeros(model.get(name).size))


def _together(
    model: Trimmable, lams: dict[str, float], epochs: int, seed: int, deadline: float, rate: float = 2e-3,
    tuning: bool = False,
) -> None:  # fmt: skip
    """Adam on all of these layers; undone if the objective does not fall. `tuning`: weights at zero stay, biases move.
    The rate falls to zero, so that noise does not keep weights from it."""
    names = list(lams) + (model.others() if tuning else [])
    before, kept = _objective(model, lams), {name: model.get(name).copy() for name in names}
    moved = [w.copy() for w in kept.values()]

    def gradients(rows: NDArray[np.intp]) -> Sequence[Reals]:
        for name, w in zip(names, moved, strict=True):
            model.put(name, w)
        return model.gradients(names, rows)

    adam(
        moved, gradients, model.samples, epochs=epochs, rate=rate, decay=True, proximal=True, seed=seed,
        l1=[lams.get(name, 0.0) for name in names],
        masks=[kept[name] != 0 if name in lams else None for name in names] if tuning else None,
        callback=lambda _: clock.now() >= deadline,
    )  # fmt: skip
    for name, w in zip(names, moved, strict=True):
        model.put(name, w)
    after = _objective(model, lams)
    logger.info("%d epochs: objective %.6g -> %.6g", epochs, before, after)
    if not after <= before:
        for name, w in kept.items():
            model.put(name, w)


def _objective(model: Trimmable, lams: dict[str, float]) -> float:
    return model.measure()[0] + sum(lam * float(np.abs(model.get(name)).sum()) for name, lam in lams.items())


def _trim_layer(model: Trimmable, name: str, lam: float, start: Reals, how: _Optimiser) -> LayerReport:
    """Quasi-Newton steps on one layer; undone if they did not lower the objective."""
    layer, weights = model.layer(name), model.get(name)
    flat = weights.ravel().astype(np.float64)
    before = layer.value(flat) + lam * float(np.abs(flat).sum())

    def late(_: Optimiser) -> bool:
        return clock.now() >= how.deadline

    found, info = minimise(
        layer.value, layer.gradient, flat.size, lam, start=flat, method=how.method, tol=how.tol,
        max_iter=how.max_iter, seed=how.seed, callback=late,
    )  # fmt: skip
    after = layer.value(found) + lam * float(np.abs(found).sum())
    if after <= before:  # always, up to rounding
        model.put(name, found)
    else:
        found, after = flat, before
    left = int(np.count_nonzero(model.get(name)))  # as stored: rounding to single precision may end a tiny one
    logger.info("layer %s: lambda %.3g, %d of %d weights left, %s", name, lam, left, flat.size, info.status)
    return LayerReport(name, start.size, int(np.count_nonzero(start)), left, lam, before, after)


def _purify(model: Trimmable, row: LayerReport, deadline: float) -> LayerReport:
    """Takes the weights away that the theory says are too many: where a search ends on kinks, some are left."""
    model.purify(row.name, lambda: clock.now() >= deadline)
    left = model.get(row.name)
    count = int(np.count_nonzero(left))
    if count == row.after:
        return row
    logger.info("layer %s: %d of %d weights left after purification", row.name, count, left.size)
    after = model.layer(row.name).value(left.ravel().astype(np.float64)) + row.lam * float(np.abs(left).sum())
    return row._replace(after=count, objective_after=after)


def _check(
    model: Trimmable, eps: Any, lam: Any, target: Any, layers: Any, method: str, tol: float, max_iter: int, sweeps: int,
    growth: float, time_limit: Any,
) -> list[str]:  # fmt: skip
    if (eps is None) == (lam is None) and not (eps is None and target is not None):
        raise SettingsError("give one of eps (loss to lose) and lam, or target (weights to keep), which may have one")
    check_whole("max_iter", max_iter, 1, 63)
    check_whole("sweeps", sweeps, 1, 63)
    optional = {"eps": eps, "lam": lam, "target": target, "time_limit": time_limit}
    given = {name: value for name, value in optional.items() if value is not None}
    for name, value in {**given, "tol": tol, "growth": growth}.items():
        may_be_zero = name == "time_limit"
        if not (is_number(value) and 0 <= value < np.inf and (value or may_be_zero)):
            raise SettingsError(f"{name} must be {'0 or more' if may_be_zero else 'a positive number'}, not {value!r}")
    if target is not None and target > 1 and target != int(target):
        raise SettingsError(f"target must be a share below 1 or a whole number of weights, not {target!r}")
    if not growth > 1:
        raise SettingsError(f"growth must be above 1, not {growth!r}")
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    known = model.names()
    listed = known if layers is None else layers if isinstance(layers, (list, tuple)) else [layers]
    names = [str(name) for name in listed]
    for name in names:
        if name not in known:
            raise SettingsError(f"there is no layer {name!r}; layers are {', '.join(known)}")
    if not names or len(set(names)) < len(names):
        raise SettingsError("layers must be names, each once, and at least one")
    return names


def magnitude_prune(network: Network, keep: int) -> tuple[Network, list[NDArray[np.bool_]]]:
    """A baseline: the `keep` weights of largest magnitude, each layer measured by its own root mean square.

    >>> small, masks = magnitude_prune(Network([4, 3, 2], seed=0), 5)
    >>> sum(small.nonzeros)
    5
    """
    if not isinstance(network, Network):
        raise SettingsError(f"network must be a fginfer.trim.Network, not {type(network).__name__}")
    check_whole("keep", keep, 0, 63)
    out = network.copy()
    sizes = np.concatenate([np.abs(w).ravel() / max(np.sqrt((w * w).mean()), 1e-300) for w in out.weights])
    cut = np.inf if keep == 0 else -np.sort(-sizes)[min(keep, len(sizes)) - 1]
    masks = []
    for j, w in enumerate(out.weights):
        masks.append(np.abs(w) / max(np.sqrt((w * w).mean()), 1e-300) >= cut)
        out.weights[j] = w * masks[-1]
    return out, masks
