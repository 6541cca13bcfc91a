"""Trimming a 128-512-512-26 network on OCR letters, beside magnitude pruning, proximal gradient and Adam + l1.

    python bench/trim.py FOLDER [--train 4000] [--epochs 15] [--hidden 512,512] [--targets 0.1] [--lam 5e-4] [--out DIR]
    python bench/trim.py FOLDER --theorem [--train 100] [--hidden 48,48]
    python bench/trim.py --digits [--targets 0.1,0.03]

FOLDER holds ocr/ocr.npz. Prints non-zeros and accuracy on the test letters, and the CPU seconds of each; later targets
start from the network of the one before. One target takes about four CPU minutes, since each baseline has the time of
trim. With --digits a small convolutional torch.nn.Module on scikit-learn's digits instead, which needs no folder but
torch. With --theorem the non-zeros of each layer, trimmed alone, beside the bound at a stationary point: samples times
labels with a derivative. The last layer is convex and reaches one; before a ReLU the search may end at kinks, which are
none, and the line says how far off it is.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import time
from collections.abc import Iterator, Sequence
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
    X: Any, y: Any, Xt: Any, yt: Any, target: float, net: Network, begin_from: Network, lam: float, max_iter: int
) -> Iterator[tuple[str, Network, float]]:
    """(method, network, CPU seconds): all at the size that trim reached, and with the time that it took."""
    begin = time.process_time()
    trimmed = trim(begin_from, X, y, target=target, lam=lam, max_iter=max_iter, tol=1e-2, growth=1.5)
    budget, wall = time.process_time() - begin, trimmed.report.seconds
    yield "trim", trimmed.network, budget
    masks = [trimmed.masks[str(j)] for j in range(len(net.weights))]
    yield "trim, tuned", trimmed.network.copy().fit(X, y, epochs=20, rate=3e-4, masks=masks), budget
    keep = trimmed.report.nonzeros
    pruned, masks = magnitude_prune(net, keep)
    yield "magnitude", pruned, 0.0
    begin = time.process_time()
    tuned = pruned.copy().fit(X, y, epochs=20, rate=3e-4, masks=masks)
    yield "magnitude, tuned", tuned, time.process_time() - begin

    def late(_: int) -> bool:
        return time.process_time() - begin > budget

    begin = time.process_time()
    longer = pruned.copy().fit(X, y, epochs=10000, rate=3e-4, masks=masks, callback=late)
    yield "magnitude, tuned as long", longer, time.process_time() - begin
    begin = time.process_time()
    last = max(row.lam for row in trimmed.report.layers)
    slow = trim(net, X, y, lam=last, method="proxgrad", max_iter=max_iter, tol=1e-2, sweeps=1000, time_limit=wall)
    yield "proximal gradient", slow.network, time.process_time() - begin
    begin = time.process_time()
    adam = magnitude_prune(net.copy().fit(X, y, epochs=10000, l1=last, callback=late), keep)
    yield "Adam + l1, largest", adam[0], time.process_time() - begin
    yield "Adam + l1, tuned", adam[0].copy().fit(X, y, epochs=20, rate=3e-4, masks=adam[1]), budget


def theorem_rows(
    X: Any, y: Any, net: Network, lam: float = 1e-2, max_iter: int = 1500
) -> Iterator[tuple[str, int, int, int, int, float]]:
    """(layer, weights, non-zeros, bound N k_S, samples times labels, how far from stationary) of each layer trimmed
    alone. The last is the largest violation of the optimality conditions over lambda: 0 at a stationary point."""
    for j in range(len(net.weights)):
        small = trim(net, X, y, lam=lam, layers=[str(j)], tol=1e-6, max_iter=max_iter).network
        layer, w = small.layer(j, X, y), small.weights[j].ravel()
        layer.value(w)
        slope = layer.gradient(w, None)
        off = np.where(w != 0, np.abs(slope + lam * np.sign(w)), np.maximum(np.abs(slope) - lam, 0)).max() / lam
        yield str(j), w.size, int(np.count_nonzero(w)), layer.support(), y.size * net.sizes[-1], float(off)


def print_row(target: float, name: str, size: int, accuracy: float, seconds: float) -> None:
    print(f"target {target:<6g} {name:<26} {size:>8} weights  accuracy {accuracy:.4f}  {seconds:.1f} s", flush=True)


def digits_rows(
    targets: Sequence[float], max_iter: int, seed: int = 0
) -> Iterator[tuple[float, tuple[str, int, float, float]]]:
    """Two convolutions and a dense layer; (target, (method, non-zeros, test accuracy, seconds))."""
    import torch
    from sklearn.datasets import load_digits

    torch.manual_seed(seed)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    X = torch.as_tensor(images[order].reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    y = torch.as_tensor(labels[order])
    X, Xt, y, yt = X[:1200], X[1200:], y[:1200], y[1200:]

    def fit(module: Any, epochs: int, rate: float, masks: dict[str, Any] | None = None) -> Any:
        """Adam; with masks only those weights move."""
        module.train()
        masks = {} if masks is None else {name: torch.as_tensor(mask) for name, mask in masks.items()}
        optimiser = torch.optim.Adam(module.parameters(), rate)
        for _ in range(epochs):
            for rows in torch.randperm(len(y)).split(64):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(module(X[rows]), y[rows]).backward()
                for name, mask in masks.items():
                    module.get_parameter(name).grad.mul_(mask)
                optimiser.step()
        return module.eval()

    def row(name: str, module: Any, begin: float) -> tuple[str, int, float, float]:
        size = sum(int(torch.count_nonzero(p)) for p in module.parameters() if p.dim() >= 2)
        with torch.no_grad():
            accuracy = float((module(Xt).argmax(1) == yt).double().mean())
        return name, size, accuracy, time.perf_counter() - begin

    begin = time.perf_counter()
    net = fit(
        torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(512, 10),
        ), 15, 2e-3,
    )  # fmt: skip
    trained = row("trained", net, begin)
    for target in targets:
        yield target, trained
        begin = time.perf_counter()
        small = trim(net, X, y, target=target, max_iter=max_iter, tol=1e-2, growth=4.0)
        yield target, row("trim", small.network, begin)
        yield target, row("trim, tuned", fit(copy.deepcopy(small.network), 20, 1e-3, small.masks), begin)
        kept = {layer: int(mask.sum()) for layer, mask in small.masks.items()}
        counts = {"magnitude": None, "magnitude, even": even_counts(net, kept), "magnitude, as trim": kept}
        for name, by_layer in counts.items():
            begin = time.perf_counter()
            pruned, masks = prune_module(net, kept, by_layer)
            yield target, row(name, pruned, begin)
            # so many epochs that it has about the seconds of trim with its own fine-tuning
            yield target, row(f"{name}, tuned", fit(pruned, 100, 1e-3, masks), begin)


def even_counts(module: Any, kept: dict[str, int]) -> dict[str, int]:
    """As many in all as `kept`, but the same share of every layer."""
    share = sum(kept.values()) / sum(module.get_parameter(name).numel() for name in kept)
    return {name: max(1, round(share * module.get_parameter(name).numel())) for name in kept}


def prune_module(module: Any, kept: dict[str, int], by_layer: dict[str, int] | None) -> tuple[Any, dict[str, Any]]:
    """The largest weights: so many of each layer, or as many as `kept` in all, measured by the root mean square of
    their layer as magnitude_prune does it (which may leave a small layer with none: then nothing gets through)."""
    import torch

    out, masks = copy.deepcopy(module), {}
    with torch.no_grad():
        parts = {name: out.get_parameter(name) for name in kept}
        sizes = {name: (p.abs() / p.square().mean().sqrt()).ravel() for name, p in parts.items()}
        everything = torch.cat(list(sizes.values()))
        for name, p in parts.items():
            pool, wanted = (everything, sum(kept.values())) if by_layer is None else (sizes[name], by_layer[name])
            cut = pool.topk(wanted).values[-1] if wanted else torch.inf
            masks[name] = (sizes[name] >= cut).reshape(p.shape)
            p.mul_(masks[name])
    return out, masks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--digits", action="store_true", help="a convolutional torch module on scikit-learn's digits")
    parser.add_argument("--theorem", action="store_true", help="non-zeros of a stationary layer, margin loss")
    parser.add_argument("--train", type=int, help="samples; 4000, with --theorem 100")
    parser.add_argument("--epochs", type=int, help="of Adam before; 15, with --theorem 80")
    parser.add_argument("--hidden", help="512,512; with --theorem 48,48")
    parser.add_argument("--targets", default="0.1")
    parser.add_argument("--lam", type=float, default=5e-4, help="where lambda begins")
    parser.add_argument("--loss", default="softmax")
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    targets = [float(t) for t in args.targets.split(",")]
    if args.digits:
        if importlib.util.find_spec("torch") is None:
            parser.error("--digits needs torch: pip install fginfer[torch,learn]")
        for target, row in digits_rows(targets, args.iterations):
            print_row(target, *row)
        return
    if args.folder is None:
        parser.error("give the FOLDER with ocr/ocr.npz, or --digits")
    X, y, Xt, yt = load(args.folder, args.train or (100 if args.theorem else 4000))
    hidden = [int(h) for h in (args.hidden or ("48,48" if args.theorem else "512,512")).split(",")]
    if args.theorem:
        net = Network([128, *hidden, 26], "margin").fit(X, y, epochs=args.epochs or 80)
        for name, size, left, bound, most, off in theorem_rows(X, y, net):
            print(
                f"layer {name}: {left} of {size} weights, bound N k_S {bound} (N K {most}), "
                f"off stationarity by {off:.1e} lambda",
                flush=True,
            )
        return
    begin = time.process_time()
    net = Network([128, *hidden, 26], args.loss, dtype=np.float32).fit(X, y, epochs=args.epochs or 15)
    points: dict[str, list[tuple[int, float]]] = {}

    def note(target: float, name: str, small: Network, seconds: float) -> None:
        size, accuracy = sum(small.nonzeros), small.accuracy(Xt, yt)
        print_row(target, name, size, accuracy, seconds)
        points.setdefault(name, []).append((size, accuracy))

    note(1.0, "trained", net, time.process_time() - begin)
    begin_from = net
    for target in sorted(targets, reverse=True):
        for name, small, seconds in compare(X, y, Xt, yt, target, net, begin_from, args.lam, args.iterations):
            note(target, name, small, seconds)
            begin_from = small if name == "trim, tuned" else begin_from
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
