"""Latent features: the atom oracle, recovery of synthetic features, real data beside other factorisations.

    python -m bench latent [--data FOLDER] [--out FOLDER] [--part atoms,recovery,real] [--sizes 100,1000]
                           [--sets Syn0,Syn1] [--densities 0.5,0.2,0.8] [--draws 5] [--first 0] [--methods lasso,ICA]
                           [--names digits,yeast,letters] [--k 4,8,16,32,64]

FOLDER holds multilabel/yeast-train.svm.gz and ocr/ocr.npz. Prints tables, CPU seconds; with --out also pictures.

atoms     the relaxation (a), the search (b), the search from roundings of the relaxation (a then b), and up to 100 rows
          the MAP engine for 10 seconds
recovery  Syn0 to Syn3 at the true K: draws with Hamming error 0 and the error of least squares with the true Z, of the
          lasso, of FastICA with two-means, and of the lasso from that start
real      root mean squared error against K. Rows are sums of features that they have or have not: of the others only
          BP-means is held to that. k-means is held to one feature a row, NMF and PCA may scale every one
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


ORACLES = {"relax": "(a) relaxation", "search": "(b) search", "both": "(a then b)", "engine": "(b) engine"}


def bench_atoms(cases: dict[str, Any], seed: int = 0) -> None:
    """Methods beside each other. The search has no bound of its own: its ratio is to that of the relaxation."""
    print("\n== Atoms: max over z of |F'z|^2; theory promises a ratio (value over bound) of 3/5 for the relaxation")
    print(f"{'F':<22}{'method':<18}{'value':>14}{'of the best':>13}{'bound':>14}{'ratio':>8}{'CPU s':>9}")
    for name, F in cases.items():
        found = {}
        for method in ("relax", "search", "both", *(["engine"] if len(F) <= 100 else [])):
            begin = time.process_time()
            atom = find_atom(F, method, seed=seed, bound=method != "search")
            found[method] = atom, time.process_time() - begin
        best = max(a.value for a, _ in found.values())
        relaxed = found["relax"][0].bound
        for method, (a, seconds) in found.items():
            bound = relaxed if a.bound is None else a.bound
            print(
                f"{name:<22}{ORACLES[method]:<18}{a.value:>14.7g}{a.value / best:>13.5f}{bound:>14.7g}"
                f"{a.value / bound:>8.3f}{seconds:>9.2f}",
                flush=True,
            )


def atom_cases(sizes: tuple[int, ...], folder: Path, rank: int = 20, seed: int = 0) -> dict[str, Any]:
    """Random F, and rows of real data (centred) as the first round of the lasso meets them."""
    rng = np.random.default_rng(seed)
    cases = {f"random {n} x {rank}": rng.standard_normal((n, rank)) for n in sizes}
    for name, X in real_data(folder, max(sizes)).items():
        for n in sorted({min(n, len(X)) for n in sizes}):
            cases[f"{name} {n} x {X.shape[1]}"] = X[:n] - X[:n].mean(0)
    return cases


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


RECOVERIES = ("lasso", "ICA", "lasso from ICA")


def bench_recovery(draws: range, names: tuple[str, ...], densities: tuple[float, ...], methods: list[str]) -> None:
    print("\n== Recovery at the true K (published: 398 s for Syn1): draws recovered, CPU seconds a draw")
    for name in names:
        for density in densities:
            rows: dict[str, list[tuple[bool, float, float]]] = {method: [] for method in methods}
            powers = []
            for seed in draws:
                for method, found in rows.items():
                    if method == "ICA":
                        X, Z, _ = make_features(name, density, seed)
                        begin = time.process_time()
                        wrong = hamming(refine(X, ica_columns(X, Z.shape[1], seed))[0], Z)
                        found.append((wrong == 0, wrong, time.process_time() - begin))
                    else:
                        r = recover(name, density, seed, start=None if method == "lasso" else "ica")
                        same = r["hamming"] == 0 and r["rmse"] <= r["with true Z"] * (1 + 1e-6) + 1e-9
                        found.append((same, r["hamming"], r["seconds"]))
                        powers.append(r["power"])
                    print(f"  draw {seed} {method}: Hamming {found[-1][1]:.4f}, {found[-1][2]:.1f} s", flush=True)
            parts = [
                f"{method} {sum(r[0] for r in found)}/{len(found)} (worst Hamming {max(r[1] for r in found):.4f}), "
                f"{np.mean([r[2] for r in found]):.1f} s"
                for method, found in rows.items()
            ]
            print(f"{name} density {density}: {' | '.join(parts)} | norms {sorted(set(powers))}", flush=True)


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
        print(f"  K={k} {name}: {curves[name][-1]:.4f}, {time.process_time() - begin:.1f} s so far", flush=True)

    for k in ks:
        begin = time.process_time()
        note("lasso", (m := LatentFeatureLasso(k, random_state=seed).fit(X)).assignments_ @ m.components_)
        note("BP-means", (b := BPMeans(k, n_init=5, random_state=seed).fit(X)).assignments_ @ b.components_)
        means = KMeans(k, n_init=4, random_state=seed).fit(X)
        note("k-means", means.cluster_centers_[means.labels_])
        note("PCA", (p := PCA(k).fit(X)).inverse_transform(p.transform(X)))
        if (X >= 0).all():
            parts = NMF(k, init="nndsvda", max_iter=1000, tol=1e-4, random_state=seed)
            note("NMF", parts.inverse_transform(parts.fit_transform(X)))
    return curves


def bench_real(folder: Path, out: Path | None, names: tuple[str, ...], ks: tuple[int, ...], rows: int = 1000) -> None:
    print("\n== Real data: root mean squared error against K")
    data = real_data(folder, rows)
    for name in names:
        X = data[name]
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
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(RECOVERIES), help="of the recovery")
    parser.add_argument("--densities", default="0.5,0.2,0.8")
    parser.add_argument("--sizes", default="20,30,40,60,100,300,1000,3000,10000")
    parser.add_argument("--names", default="digits,yeast,letters", help="of the real data")
    parser.add_argument("--k", default="4,8,16,32,64", help="numbers of features of the real data")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    parts = args.part.split(",")
    names, densities = tuple(args.sets.split(",")), tuple(float(v) for v in args.densities.split(","))
    if unknown := set(names) - set(SETS):
        parser.error(f"no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    methods = args.methods.split(",")
    if unknown := set(methods) - set(RECOVERIES):
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(RECOVERIES)}")
    if "atoms" in parts:
        bench_atoms(atom_cases(tuple(int(n) for n in args.sizes.split(",")), args.data))
    if "recovery" in parts:
        bench_recovery(range(args.first, args.first + args.draws), names, densities, methods)
        if args.out is not None:
            plot_features(args.out / "latent-features.png")
    if "real" in parts:
        bench_real(args.data, args.out, tuple(args.names.split(",")), tuple(int(k) for k in args.k.split(",")))


if __name__ == "__main__":
    main()
