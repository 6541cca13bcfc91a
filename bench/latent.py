"""Latent features: the atom oracle, recovery of synthetic features, real data beside other factorisations.

    python bench/latent.py [--data FOLDER] [--out FOLDER] [--part atoms,recovery,real] [--draws 1] [--sizes 100,1000]

FOLDER holds multilabel/yeast-train.svm.gz and ocr/ocr.npz. Prints tables, CPU seconds; with --out also pictures. Every
function can be called with small numbers, as the gallery does.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.latent import BPMeans, LatentFeatureLasso, find_atom
from fginfer.latent.alternating import least_squares, refine
from fginfer.latent.starts import ica_columns

# N, D, K, sigma, pixels of a feature (Table 4.1 of Yen's thesis, 2018)
SETS = {
    "Syn0": (100, 196, 4, 0.0, (2, 4)),
    "Syn1": (1000, 1000, 35, 0.01, None),
    "Syn2": (1000, 900, 14, 0.1, (7, 7)),
    "Syn3": (1000, 900, 35, 0.1, (6, 6)),
}


def make_features(name: str, density: float = 0.5, seed: int = 0) -> tuple[Any, Any, Any]:
    """(X, Z, W): Z ~ Ber(density), a feature is N(0, 1) on a contiguous region of a square image, 0 elsewhere."""
    n, d, k, sigma, region = SETS[name]
    rng = np.random.default_rng(seed)
    if region is None:
        W = rng.standard_normal((k, d))
    else:
        side = int(np.sqrt(d))
        images = np.zeros((k, side, side))
        for image in images:
            top, left = (rng.integers(side - size + 1) for size in region)
            image[top : top + region[0], left : left + region[1]] = rng.standard_normal(region)
        W = images.reshape(k, d)
    Z = (rng.random((n, k)) < density).astype(np.uint8)
    return Z @ W + sigma * rng.standard_normal((n, d)), Z, W


def hamming(Z: Any, truth: Any) -> float:
    """Share of wrong entries under the best matching of columns."""
    differ = (Z[:, :, None] != truth[:, None, :]).mean(0)
    return float(differ[linear_sum_assignment(differ)].mean())


def bench_atoms(sizes: tuple[int, ...] = (100, 1000, 10000), rank: int = 20, real: Any = None, seed: int = 0) -> None:
    """Methods beside each other: value over the best found, value over the bound, CPU seconds."""
    print("\n== Atoms: max over z of |F'z|^2; share of the best found / of the upper bound / CPU seconds")
    rng = np.random.default_rng(seed)
    cases = [(f"random {n} x {rank}", rng.standard_normal((n, rank))) for n in sizes]
    if real is not None:
        cases.append((f"real {real.shape[0]} x {real.shape[1]}", real - real.mean(0)))
    for name, F in cases:
        found = {}
        for method in ("relax", "search", "both", *(["engine"] if len(F) <= 100 else [])):
            begin = time.process_time()
            found[method] = find_atom(F, method, seed=seed), time.process_time() - begin
        best = max(a.value for a, _ in found.values())
        row = [f"{m} {a.value / best:.4f} / {a.ratio:.3f} / {t:.2f} s" for m, (a, t) in found.items()]
        print(f"{name:<20}", " | ".join(row), flush=True)


def recover(name: str, density: float, seed: int = 0, **options: Any) -> dict[str, float]:
    """One draw: Hamming error, error against Z*W*, that of least squares with the true Z, and CPU seconds."""
    X, Z, W = make_features(name, density, seed)
    begin = time.process_time()
    model = LatentFeatureLasso(Z.shape[1], **options).fit(X)
    seconds = time.process_time() - begin
    exact = Z @ W
    with_truth = Z @ least_squares(Z, X)
    return {
        "hamming": hamming(model.assignments_, Z),
        "rmse": float(np.sqrt(((model.assignments_ @ model.components_ - exact) ** 2).mean())),
        "with true Z": float(np.sqrt(((with_truth - exact) ** 2).mean())),
        "seconds": seconds,
        "gap": model.gap_,
        "power": model.size_power_,
    }


def bench_recovery(draws: int = 1, names: tuple[str, ...] = tuple(SETS)) -> None:
    print("\n== Recovery at the true K (published: 398 s for Syn1)")
    for name in names:
        for density in (0.5, 0.2):
            for seed in range(draws):
                r = recover(name, density, seed)
                X, Z, _ = make_features(name, density, seed)
                begin = time.process_time()
                start = ica_columns(X, Z.shape[1], seed)
                ica, after = hamming(start, Z), hamming(refine(X, start)[0], Z)
                seconds = time.process_time() - begin
                both = recover(name, density, seed, start="ica")
                print(
                    f"{name} density {density} draw {seed}: lasso Hamming {r['hamming']:.4f} RMSE {r['rmse']:.5f} "
                    f"(true Z {r['with true Z']:.5f}) {r['seconds']:.1f} s, norm {r['power']:g}, gap {r['gap']:.2f} | "
                    f"ICA {ica:.4f}, refined {after:.4f}, {seconds:.1f} s | "
                    f"lasso from ICA {both['hamming']:.4f}, {both['seconds']:.1f} s",
                    flush=True,
                )


def real_data(folder: Path, rows: int = 1000) -> dict[str, Any]:
    from sklearn.datasets import load_digits, load_svmlight_file

    out = {"digits": load_digits().data[:rows]}
    yeast = folder / "multilabel" / "yeast-train.svm.gz"
    if yeast.exists():
        out["yeast"] = load_svmlight_file(str(yeast), multilabel=True)[0].toarray()[:rows]
    letters = folder / "ocr" / "ocr.npz"
    if letters.exists():
        out["letters"] = np.load(letters)["X"][:rows].astype(float)
    return out


def reconstruction(X: Any, ks: tuple[int, ...], seed: int = 0) -> dict[str, list[float]]:
    """Root mean squared error against K, method by method (centred PCA; NMF where nothing is negative)."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import NMF, PCA

    curves: dict[str, list[float]] = {}

    def note(name: str, fitted: Any) -> None:
        curves.setdefault(name, []).append(float(np.sqrt(((X - fitted) ** 2).mean())))

    for k in ks:
        note("lasso", (m := LatentFeatureLasso(k, random_state=seed).fit(X)).assignments_ @ m.components_)
        note("BP-means", (b := BPMeans(k, n_init=5, random_state=seed).fit(X)).assignments_ @ b.components_)
        means = KMeans(k, n_init=4, random_state=seed).fit(X)
        note("k-means", means.cluster_centers_[means.labels_])
        note("PCA", (p := PCA(k).fit(X)).inverse_transform(p.transform(X)))
        if (X >= 0).all():
            note("NMF", (f := NMF(k, init="nndsvda", max_iter=400, tol=1e-3)).inverse_transform(f.fit_transform(X)))
    return curves


def bench_real(folder: Path, out: Path | None, ks: tuple[int, ...] = (4, 8, 16, 32), rows: int = 1000) -> None:
    print("\n== Real data: root mean squared error against K")
    for name, X in real_data(folder, rows).items():
        curves = reconstruction(X, ks)
        for method, errors in curves.items():
            print(
                f"{name:<8} {method:<9}",
                "  ".join(f"K={k} {e:.4f}" for k, e in zip(ks, errors, strict=True)),
                flush=True,
            )
        if out is not None:
            plot_curves(ks, curves, out / f"latent-{name}.png", "K", "root mean squared error", name)


def plot_curves(x: Any, curves: dict[str, list[float]], path: Path, xlabel: str, ylabel: str, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.6))
    for name, values in curves.items():
        axes.plot(x, values, marker="o", label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def plot_features(path: Path, name: str = "Syn3", seed: int = 0) -> None:
    """True and recovered features as images, matched."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, Z, W = make_features(name, 0.5, seed)
    model = LatentFeatureLasso(len(W)).fit(X)
    differ = (model.assignments_[:, :, None] != Z[:, None, :]).mean(0)
    rows, columns = linear_sum_assignment(differ)
    side = int(np.sqrt(W.shape[1]))
    figure, axes = plt.subplots(3, 5, figsize=(7, 4.4))
    for j in range(5):
        axes[0, j].imshow(X[j].reshape(side, side), cmap="gray")
        axes[1, j].imshow(W[columns[j]].reshape(side, side), cmap="gray")
        axes[2, j].imshow(model.components_[rows[j]].reshape(side, side), cmap="gray")
    for row, label in zip(axes, ("observed", "true", "found"), strict=True):
        row[0].set_ylabel(label)
    for a in axes.ravel():
        a.set(xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("."))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", default="atoms,recovery,real")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--sizes", default="100,1000,10000")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    parts = args.part.split(",")
    if "atoms" in parts:
        bench_atoms(tuple(int(n) for n in args.sizes.split(",")), real=next(iter(real_data(args.data).values())))
    if "recovery" in parts:
        bench_recovery(args.draws)
        if args.out is not None:
            plot_features(args.out / "latent-features.png")
    if "real" in parts:
        bench_real(args.data, args.out)


if __name__ == "__main__":
    main()
