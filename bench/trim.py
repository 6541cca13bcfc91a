"""Trimming a 128-512-512-26 network on OCR letters, beside magnitude pruning, proximal gradient and Adam + l1.

    python bench/trim.py FOLDER [--train 4000] [--epochs 20] [--hidden 512,512] [--targets 0.1,0.03] [--out FOLDER]

FOLDER holds ocr/ocr.npz. Prints non-zeros and accuracy on the test letters, and the seconds of each.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from fginfer.trim import Network, magnitude_prune, trim


def load(folder: Path, n_train: int, n_test: int = 5000, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    data = np.load(folder / "ocr" / "ocr.npz")
    order = np.random.default_rng(seed).permutation(len(data["y"]))
    X, y = data["X"][order].astype(float), data["y"][order].astype(np.int64)
    return X[:n_train], y[:n_train], X[n_train : n_train + n_test], y[n_train : n_train + n_test]


def compare(
    X: Any, y: Any, Xt: Any, yt: Any, hidden: tuple[int, ...], target: float, net: Network, max_iter: int = 30
) -> list[tuple[str, int, float, float]]:
    """(method, non-zeros, test accuracy, seconds) at about the same size."""
    rows = [("trained", sum(net.nonzeros), net.accuracy(Xt, yt), 0.0)]

    def note(name: str, small: Network, begin: float) -> None:
        rows.append((name, sum(small.nonzeros), small.accuracy(Xt, yt), time.perf_counter() - begin))

    begin = time.perf_counter()
    trimmed = trim(net, X, y, target=target, max_iter=max_iter, tol=1e-2, growth=4.0)
    note("trim", trimmed.network, begin)
    budget = time.perf_counter() - begin
    tuned = trimmed.network.copy().fit(
        X, y, epochs=20, rate=3e-4, masks=[trimmed.masks[str(j)] for j in range(len(hidden) + 1)]
    )
    note("trim, fine-tuned", tuned, begin)
    keep = trimmed.report.nonzeros
    begin = time.perf_counter()
    pruned, masks = magnitude_prune(net, keep)
    note("magnitude", pruned, begin)
    note("magnitude, fine-tuned", pruned.copy().fit(X, y, epochs=20, rate=3e-4, masks=masks), begin)
    begin = time.perf_counter()
    lam = {row.name: row.lam for row in trimmed.report.layers}
    slow = trim(net, X, y, lam=max(lam.values()), method="proxgrad", max_iter=1000, tol=1e-2, time_limit=budget)
    note("proximal gradient", slow.network, begin)
    begin = time.perf_counter()
    adam = net.copy().fit(
        X, y, epochs=1000, l1=max(lam.values()), callback=lambda _: time.perf_counter() - begin > budget
    )
    note("Adam + l1, largest", magnitude_prune(adam, keep)[0], begin)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", default="512,512")
    parser.add_argument("--targets", default="0.1,0.03")
    parser.add_argument("--loss", default="softmax")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    X, y, Xt, yt = load(args.folder, args.train)
    hidden = tuple(int(h) for h in args.hidden.split(","))
    begin = time.perf_counter()
    net = Network([128, *hidden, 26], args.loss).fit(X, y, epochs=args.epochs)
    print(
        f"trained on {len(X)} letters in {time.perf_counter() - begin:.1f} s; {sum(net.nonzeros)} weights", flush=True
    )
    points: dict[str, list[tuple[int, float]]] = {}
    for target in (float(t) for t in args.targets.split(",")):
        for name, size, accuracy, seconds in compare(X, y, Xt, yt, hidden, target, net, args.iterations):
            print(
                f"target {target:<6g} {name:<22} {size:>8} weights  accuracy {accuracy:.4f}  {seconds:.1f} s",
                flush=True,
            )
            points.setdefault(name, []).append((size, accuracy))
    if args.out is not None:
        plot(points, args.out / "trim.png")


def plot(points: dict[str, list[tuple[int, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(5, 3.6))
    for name, values in points.items():
        axes.semilogx(*zip(*sorted(values), strict=True), marker="o", label=name)
    axes.set(xlabel="non-zero weights", ylabel="test accuracy")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    main()
