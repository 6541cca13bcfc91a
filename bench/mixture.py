"""Mixtures of regressions: MixLasso beside EM and alternating minimisation with 100 restarts, against N.

    python bench/mixture.py [--sets 3,6] [--samples 200,400] [--draws 3] [--restarts 100] [--methods lasso+em,em]
    python bench/mixture.py --curves [--out FOLDER]

Sets 1 to 12 are those of Table 4.2 in Yen's thesis (2018); prints the median error of the parameters, how many draws
succeeded (error below 1e-3, with noise .1 below .1), and CPU seconds. --curves: four polynomials, four price
series.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.latent import MixedRegression
from fginfer.latent.em import restarts


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


METHODS = ("lasso+em", "lasso+alt", "em", "alt")


def compare(
    number: int, n: int, seed: int = 0, n_init: int = 100, methods: tuple[str, ...] = METHODS
) -> dict[str, tuple[float, float]]:
    """(parameter error, CPU seconds) of each method on one draw; every one is printed as it ends."""
    X, y, W = make_mixture(number, n, seed)
    _, k, _, generalized, _ = setting(number)
    out = {}

    for name in methods:
        begin = time.process_time()
        if name.startswith("lasso"):
            refine = "soft" if name == "lasso+em" else "hard"
            found = MixedRegression(k, generalized=generalized, n_init=3, refine=refine).fit(X, y).coef_
        else:
            found = restarts(X, y, k, generalized=generalized, n_init=n_init, soft=name == "em", seed=seed).best()[0]
        out[name] = parameter_error(found, W), time.process_time() - begin
        print(f"  N={n} draw {seed}: {name} {out[name][0]:.1e}, {out[name][1]:.1f} s", flush=True)
    return out


def bench(
    sets: list[int], samples: list[int], draws: int, n_init: int, methods: tuple[str, ...], out: Path | None
) -> None:
    for number in sets:
        d, k, inputs, generalized, noise = setting(number)
        kind = "generalised" if generalized else "standard"
        print(
            f"\n== Syn{number}: D={d} K={k} {inputs} {kind}, noise {noise}; median error, successes of {draws}, CPU s"
        )
        curves: dict[str, list[float]] = {}
        for n in samples:
            runs = [compare(number, n, seed, n_init, methods) for seed in range(draws)]
            row = []
            for name in runs[0]:
                errors = [r[name][0] for r in runs]
                good = sum(e < (0.1 if noise else 1e-3) for e in errors)
                curves.setdefault(name, []).append(float(np.median(errors)))
                row.append(f"{name} {np.median(errors):.1e} {good}/{draws} {np.mean([r[name][1] for r in runs]):.1f} s")
            print(f"N={n:<5}", " | ".join(row), flush=True)
        if out is not None:
            plot(samples, curves, out / f"mixture-syn{number}.png", f"Syn{number}")


def plot(samples: list[int], curves: dict[str, list[float]], path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.6))
    for name, values in curves.items():
        axes.semilogy(samples, values, marker="o", label=name)
    axes.set(xlabel="samples", ylabel="error of the parameters", title=title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def make_curves(n: int = 400, noise: float = 0.0, seed: int = 0) -> tuple[Any, Any, Any]:
    """Syn13 and Syn14: four polynomials of degree 6 with coefficients from U(-4, 4); x, y, which."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1))
    W = rng.uniform(-4, 4, (4, 6))
    which = rng.integers(0, 4, n)
    y = (W[which] * x ** np.arange(1, 7)).sum(1) + noise * rng.standard_normal(n)
    return x, y, which


def make_prices(weeks: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    """Four series that grow at rates of their own with slow random drifts, mixed: time in (0, 1), price, which."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, weeks)
    rates = np.array([0.2, 1.0, 1.8, -0.6])
    walks = np.cumsum(rng.standard_normal((4, weeks)), axis=1) / np.sqrt(weeks) * 0.15
    prices = np.array([20, 30, 55, 90])[:, None] * np.exp(rates[:, None] * t + walks)
    which = np.repeat(np.arange(4), weeks)
    return np.tile(t, 4)[:, None], prices.ravel(), which


def fit_curves(x: Any, y: Any, degree: int, n_init: int = 3) -> tuple[MixedRegression, float, float]:
    """(model, its error, that of EM with 100 restarts on the same features), kernel (2xx' + 2)^degree."""
    scale = float(np.abs(y).max())
    model = MixedRegression(4, kernel="poly", degree=degree, gamma=2.0, coef0=2.0, ridge=1e-8, n_init=n_init)
    model.fit(x, y / scale)
    features = model._features(x)
    em = restarts(features, y / scale, 4, n_init=100, ridge=1e-8, start="samples")
    return model, model.error_ * scale, float(np.sqrt(em.best()[2] / len(y))) * scale


def demonstrate(out: Path | None, n: int = 400) -> None:
    print("\n== Curves told apart: root mean squared error, MixLasso beside EM with 100 restarts")
    for name, (x, y, _), degree in (
        ("polynomials", make_curves(n), 6),
        ("polynomials-noisy", make_curves(n, 0.1), 6),
        ("prices", make_prices(n // 2), 8),
    ):
        model, error, em = fit_curves(x, y, degree)
        print(f"{name:<18} lasso {error:.4g}  EM {em:.4g}", flush=True)
        if out is not None:
            plot_fit(x, y, model, out / f"mixture-{name}.png")


def plot_fit(x: Any, y: Any, model: MixedRegression, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    scale = float(np.abs(y).max())
    grid = np.linspace(x.min(), x.max(), 200)[:, None]
    figure, axes = plt.subplots(figsize=(5, 3.6))
    axes.scatter(x[:, 0], y, c=model.assignments_.argmax(1), cmap="tab10", s=6)
    axes.plot(grid[:, 0], scale * model.predict_components(grid), linewidth=1)
    axes.set(xlabel="x", ylabel="y")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="1,2,3,4,5,6")
    parser.add_argument("--samples", default="200,400,800,1600")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--curves", action="store_true")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    if args.curves:
        demonstrate(args.out)
        return
    numbers, samples = ([int(v) for v in text.split(",")] for text in (args.sets, args.samples))
    methods = tuple(args.methods.split(","))
    if unknown := set(methods) - set(METHODS):
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    bench(numbers, samples, args.draws, args.restarts, methods, args.out)


if __name__ == "__main__":
    main()
