"""Mixtures of regressions: MixLasso beside EM and alternating minimisation with 100 restarts, against N.

    python -m bench mixture [--sets 3,6] [--samples 250,300] [--draws 10] [--all] [--methods lasso,em] [--out FOLDER]
    python -m bench mixture --polynomials [--draws 5] [--samples 100,400] [--out FOLDER]
    python -m bench mixture --prices [--out FOLDER]
    python -m bench mixture --draw FILES --out FOLDER        curves from what earlier runs printed

Sets 1 to 12 are those of Table 4.2 in Yen's thesis (2018), --polynomials its sets 13 and 14 (the error is that of the
curves on a grid), --prices four mixed price-like series. Prints the median error of the parameters, how many draws
succeeded (error below 1e-3; with noise of .1 below .1), and CPU seconds; samples default to a ladder for each set. A
method has recovered a set at N if it succeeds in 9 of 10 draws: without --all its draws end with the second failure,
and larger N are left out once it has recovered it. Methods:

    lasso       MixedRegression: lasso, starts in its span, exchanges of components
    published   rounded solutions of the lasso, refined by EM, nothing else
    em, em-own  EM from 100 random starts; with a common variance, with variances of the components' own
    exchange    the exchanges of `lasso`, but from random starts: what the lasso itself contributes
    alt         alternating minimisation from 100 random starts
    tensor      EM from the tensor start (standard form; made for normal inputs)
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.latent import MixedRegression
from fginfer.latent.em import Mixture, restarts
from fginfer.latent.exchange import improve
from fginfer.latent.tensor import tensor_start

Curves = Callable[[Any], Any]  # x to the values of the components there, (rows, K)
GRID = np.linspace(-1, 1, 201)[:, None]
LADDERS = {0: (700, 1000, 1400, 2000), 1: (1500, 2000, 2500, 3000, 4000), 2: (250, 300, 400, 500, 700)}


def setting(number: int) -> tuple[int, int, str, bool, float]:
    """D, K, inputs, generalised, noise of Syn1 to Syn12."""
    d, k, generalized = [(100, 3, False), (20, 10, False), (20, 3, True)][(number - 1) % 3]
    return d, k, "normal" if (number - 1) % 6 < 3 else "uniform", generalized, 0.1 if number > 6 else 0.0


def make_mixture(number: int, n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """(X, y, W)."""
    d, k, inputs, generalized, noise = setting(number)
    rng = np.random.default_rng([number, seed])
    X = rng.standard_normal((n, d)) if inputs == "normal" else rng.uniform(-1, 1, (n, d))
    W = rng.standard_normal((k, d))
    Z = rng.random((n, k)) < 0.5 if generalized else np.eye(k)[rng.integers(k, size=n)]
    return X, (Z * (X @ W.T)).sum(1) + noise * rng.standard_normal(n), W


def parameter_error(W: Any, truth: Any) -> float:
    """|W - W*| / |W*| under the best matching of components."""
    apart = ((W[:, None] - truth[None]) ** 2).sum(2)
    return float(np.sqrt(apart[linear_sum_assignment(apart)].sum() / (truth**2).sum()))


METHODS = ("lasso", "published", "em", "em-own", "exchange", "alt", "tensor")
LASSO = {"penalty": 0.2, "n_atoms": 8}


def run(name: str, X: Any, y: Any, k: int, generalized: bool, seed: int) -> Any:
    """The weights that a method finds."""
    if name == "lasso":
        model = MixedRegression(k, generalized=generalized, n_span=20, exchanges=200, random_state=seed, **LASSO)
        return model.fit(X, y).coef_
    if name == "published":
        model = MixedRegression(k, generalized=generalized, n_span=0, exchanges=0, n_atoms=15, random_state=seed)
        return model.fit(X, y).coef_
    if name == "tensor":
        start = tensor_start(X, y, k, seed)[None]
        return Mixture(X, y, k, generalized).run(start, True, tol=1e-6, enough=1e-20).best()[0]
    if name == "exchange":
        rng = np.random.default_rng(seed)
        brief = Mixture(X, y, k, generalized, 1e-7, np.float32)
        found, _ = improve(brief, rng.standard_normal((28, k, X.shape[1])), rng, 200, 1e-9, lambda: False)
        return Mixture(X, y, k, generalized).run(found[None], True).best()[0]
    own, soft = name == "em-own", name != "alt"
    return restarts(
        X, y, k, generalized=generalized, soft=soft, own=own, seed=seed, dtype=np.float32, tol=1e-6
    ).best()[0]  # fmt: skip


def cell(number: int, n: int, name: str, draws: range, everything: bool) -> tuple[list[float], float]:
    """(error of each draw, CPU seconds of one): until the second failure, if that is enough to know."""
    _, k, _, generalized, noise = setting(number)
    errors: list[float] = []
    begin = time.process_time()
    for seed in draws:
        X, y, W = make_mixture(number, n, seed)
        errors.append(parameter_error(run(name, X, y, k, generalized, seed), W))
        print(f"  draw {seed} {name} N={n}: {errors[-1]:.1e}", flush=True)
        if not everything and sum(e >= good_enough(noise) for e in errors) > 1:
            break
    return errors, (time.process_time() - begin) / len(errors)


def good_enough(noise: float) -> float:
    return 0.1 if noise else 1e-3


def bench(
    sets: list[int],
    samples: list[int] | None,
    draws: range,
    everything: bool,
    methods: tuple[str, ...],
    out: Path | None,
) -> None:
    for number in sets:
        d, k, inputs, generalized, noise = setting(number)
        kind = "generalised" if generalized else "standard"
        print(f"\n== Syn{number}: D={d} K={k} {inputs} {kind}, noise {noise}", flush=True)
        curves: dict[str, list[tuple[int, float]]] = {}
        for name in methods:
            if name == "tensor" and generalized:
                continue
            for n in samples or LADDERS[(number - 1) % 3]:
                errors, seconds = cell(number, n, name, draws, everything)
                good = sum(e < good_enough(noise) for e in errors)
                curves.setdefault(name, []).append((n, float(np.median(errors))))
                print(
                    f"Syn{number} N={n:<5} {name:<10} {good}/{len(errors)} succeed, median error "
                    f"{np.median(errors):.1e}, {seconds:.1f} s a draw",
                    flush=True,
                )
                if not everything and good >= 0.9 * len(draws):
                    break
        if out is not None:
            plot(curves, out / f"mixture-syn{number}.png", f"Syn{number}")


def plot(
    curves: dict[str, list[tuple[int, float]]], path: Path, title: str, ylabel: str = "error of the parameters"
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.6))
    for name, values in curves.items():
        axes.semilogy(*zip(*values, strict=True), marker="o", label=name)
    axes.set(xlabel="samples", ylabel=ylabel, title=title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def make_curves(n: int = 400, noise: float = 0.0, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Syn13 and Syn14: four polynomials of degree 6 with coefficients from U(-4, 4); x, y, y without noise, values of
    the four on GRID."""
    rng = np.random.default_rng([13, seed])
    W, x, which = rng.uniform(-4, 4, (4, 6)), rng.uniform(-1, 1, (n, 1)), rng.integers(0, 4, n)
    exact = (W[which] * x ** np.arange(1, 7)).sum(1)
    return x, exact + noise * rng.standard_normal(n), exact, W @ (GRID ** np.arange(1, 7)).T


def make_prices(weeks: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    """Four series that grow at rates of their own with slow random drifts, mixed: time in (0, 1), price, which."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, weeks)
    rates = np.array([0.2, 1.0, 1.8, -0.6])
    walks = np.cumsum(rng.standard_normal((4, weeks)), axis=1) / np.sqrt(weeks) * 0.15
    prices = np.array([20, 30, 55, 90])[:, None] * np.exp(rates[:, None] * t + walks)
    which = np.repeat(np.arange(4), weeks)
    return np.tile(t, 4)[:, None], prices.ravel(), which


def fit_curves(x: Any, y: Any, degree: int, seed: int = 0) -> tuple[MixedRegression, dict[str, Curves]]:
    """(model, components of MixLasso and of EM as functions of x): kernel (2xx' + 2)^degree, EM from 100 random
    assignments as published."""
    scale = float(np.abs(y).max())
    model = MixedRegression(
        4, kernel="poly", degree=degree, gamma=2.0, coef0=2.0, ridge=1e-8, n_span=20, exchanges=20, random_state=seed
    ).fit(x, y / scale)
    features = model._features(x)
    weights = restarts(features, y / scale, 4, n_init=100, ridge=1e-8, start="samples", seed=seed, tol=1e-6).best()[0]
    return model, {
        "lasso": lambda at: scale * model.predict_components(at),
        "em": lambda at: scale * model._features(at) @ weights.T,
    }


def distance(curves: Curves, x: Any, y: Any, exact: Any) -> float:
    """Root mean squared distance to the true values, each sample by its best component."""
    outputs = curves(x)
    nearest = outputs[np.arange(len(y)), np.abs(outputs - y[:, None]).argmin(1)]
    return float(np.sqrt(((nearest - exact) ** 2).mean()))


def draw_again(files: list[Path], out: Path) -> None:
    """Curves of all sets that the files tell of, from the lines that `bench` prints; long runs are made in parts."""
    line = re.compile(r"Syn(\d+) N=(\d+) +(\S+) +\d+/\d+ succeed, median error (\S+),")
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for path in files:
        for number, n, name, error in line.findall(path.read_text()):
            curves.setdefault(number, {}).setdefault(name, []).append((int(n), float(error)))
    for number, found in curves.items():
        found = {name: sorted(set(points)) for name, points in found.items()}
        plot(found, out / f"mixture-syn{number}.png", f"Syn{number}")


def is_likelier(model: MixedRegression, x: Any, y: Any, truth: Any) -> bool:
    """Whether the solution is likelier than the one that EM reaches from the true curves: then no search for the
    likeliest would have found those."""
    scale = float(np.abs(y).max())
    mixture = Mixture(model._features(x), y / scale, 4, False, model.ridge)
    true = np.linalg.lstsq(model._features(GRID), truth.T / scale, rcond=None)[0].T
    ours, theirs = mixture.run(np.stack([model._weights, true]), soft=True).costs
    return bool(ours < theirs)


def bench_polynomials(draws: range, out: Path | None, samples: tuple[int, ...] = (100, 200, 400)) -> None:
    for number, noise in ((13, 0.0), (14, 0.1)):
        curves: dict[str, list[tuple[int, float]]] = {"lasso": [], "em": []}
        for n in samples:
            found: dict[str, list[tuple[float, float]]] = {"lasso": [], "em": []}
            beyond = 0  # missed, but likelier than the truth
            for seed in draws:
                x, y, exact, truth = make_curves(n, noise, seed)
                model, fits = fit_curves(x, y, 6, seed)
                for name, fit in fits.items():
                    found[name].append((distance(fit, x, y, exact), parameter_error(fit(GRID).T, truth)))
                beyond += found["lasso"][-1][1] >= good_enough(noise) and is_likelier(model, x, y, truth)
            for name, runs in found.items():
                away, error = np.median(runs, axis=0)
                good = sum(e < good_enough(noise) for _, e in runs)
                curves[name].append((n, float(away)))
                print(
                    f"Syn{number} N={n:<5} {name:<6} {good}/{len(runs)} succeed, median error of the curves {error:.1e}"
                    f", distance to the true values {away:.1e}",
                    flush=True,
                )
            missed = sum(e >= good_enough(noise) for _, e in found["lasso"])
            print(f"  of {missed} that lasso missed, {beyond} are likelier than EM from the truth", flush=True)
        if out is not None:
            plot(curves, out / f"mixture-syn{number}.png", f"Syn{number}", "distance to the true values")
            plot_fit(x, y, model, out / f"mixture-polynomials-{noise:g}.png")


def bench_prices(out: Path | None, weeks: tuple[int, ...] = (100, 200, 300)) -> None:
    for count in weeks:
        x, y, which = make_prices(count)
        model, fits = fit_curves(x, y, 8)
        ours, em = (distance(fits[name], x, y, y) for name in ("lasso", "em"))
        found = model.assignments_.argmax(1)
        table = np.array([[(which == a)[found == b].sum() for b in range(4)] for a in range(4)])
        right = table[linear_sum_assignment(-table)].sum() / len(y)
        print(f"prices, {count} weeks: error MixLasso {ours:.3f}, EM {em:.3f}; {right:.1%} told right", flush=True)
        if out is not None:
            plot_fit(x, y, model, out / f"mixture-prices-{count}.png")


def plot_fit(x: Any, y: Any, model: MixedRegression, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    scale = float(np.abs(y).max())
    grid = np.linspace(x.min(), x.max(), 200)[:, None]
    figure, axes = plt.subplots(figsize=(5, 3.6))
    for k, curve in enumerate(scale * model.predict_components(grid).T):
        own = model.assignments_[:, k] == 1
        axes.scatter(x[own, 0], y[own], color=f"C{k}", s=6)
        axes.plot(grid[:, 0], curve, color=f"C{k}", linewidth=1)
    axes.set(xlabel="x", ylabel="y")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="3,6", help="numbers of sets, 1 to 12")
    parser.add_argument("--samples", help="numbers of samples; a ladder for each set if not given")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--all", action="store_true", help="every draw at every N")
    parser.add_argument("--methods", default="lasso,em")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--polynomials", action="store_true")
    parser.add_argument("--prices", action="store_true")
    parser.add_argument("--draw", type=Path, nargs="+", metavar="FILE", help="printed results to draw, with --out")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    samples = [int(v) for v in args.samples.split(",")] if args.samples else None
    draws = range(args.first, args.first + args.draws)
    if args.draw is not None:
        if args.out is None:
            parser.error("--draw needs --out FOLDER")
        draw_again(args.draw, args.out)
        return
    if args.polynomials:
        bench_polynomials(draws, args.out, tuple(samples or (100, 200, 400)))
    if args.prices:
        bench_prices(args.out)
    if args.polynomials or args.prices:
        return
    methods = tuple(args.methods.split(","))
    if unknown := set(methods) - set(METHODS):
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    bench([int(v) for v in args.sets.split(",")], samples, draws, args.all, methods, args.out)


if __name__ == "__main__":
    main()
