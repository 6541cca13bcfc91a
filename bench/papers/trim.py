"""Trimming a 128-512-512-26 network on OCR letters, beside magnitude pruning, proximal gradient and Adam + l1.

    python -m bench trim FOLDER [--train 47152] [--epochs 15] [--hidden 512,512] [--targets 0.1] [--lam 1.5e-4]
                                [--methods trim,layers,magnitude,proxgrad,adam] [--seconds 90 --keep 34000]
                                [--network FILE] [--out DIR]
    python -m bench trim FOLDER --theorem [--train 100] [--hidden 48,48]
    python -m bench trim --digits [--targets 0.1,0.03]

FOLDER holds ocr/ocr.npz; 5000 letters are held out. Prints non-zeros and accuracy on them, and the CPU seconds of each.
Every baseline has the size that trim reached and the seconds that it took, fine-tuning included; --seconds and --keep
give them without running trim. Methods:

    trim        Adam with proximal l1 steps on all layers, then proximal quasi-Newton steps layer by layer; fine-tuned
    layers      the published algorithm: the quasi-Newton steps alone; fine-tuned
    magnitude   the largest weights of the trained network, as they are and fine-tuned
    proxgrad    proximal gradient in place of quasi-Newton, without Adam
    adam        Adam + l1 by subgradients, the largest weights then fine-tuned

With --digits a small convolutional torch.nn.Module on scikit-learn's digits instead, which needs no folder but torch.
With --theorem the non-zeros of each layer, trimmed alone, beside the bound at a stationary point: samples times labels
with a derivative. The last layer is convex and reaches one; before a ReLU the search ends at kinks, each of which
allows one weight more: the line says how many there are, and how far from stationary the point would be without them.
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


def trained(net: Network, X: Any, y: Any, epochs: int, path: Path | None) -> Network:
    """From the file, if there is one; else by Adam, and into the file."""
    if path is not None and path.exists():
        with np.load(path) as file:
            net.weights = [file[f"w{j}"] for j in range(len(net.weights))]
            net.biases = [file[f"b{j}"] for j in range(len(net.biases))]
        return net
    net.fit(X, y, epochs=epochs)
    if path is not None:
        arrays = {f"w{j}": w for j, w in enumerate(net.weights)} | {f"b{j}": b for j, b in enumerate(net.biases)}
        np.savez(path, **arrays)
    return net


TUNING = 10  # epochs, for every method
METHODS = ("trim", "layers", "magnitude", "proxgrad", "adam")


class Contest:
    """All methods on one trained network; the first gives the size and the seconds of the others."""

    def __init__(self, X: Any, y: Any, net: Network, lam: float, max_iter: int, epochs: int) -> None:
        self.X, self.y, self.net, self.lam, self.max_iter, self.epochs = X, y, net, lam, max_iter, epochs
        begin = time.process_time()
        net.copy().fit(X, y, epochs=1)
        self.epoch = time.process_time() - begin

    def tuned(self, small: Network, masks: Any = None, epochs: int = TUNING) -> Network:
        masks = [w != 0 for w in small.weights] if masks is None else masks
        return small.copy().fit(self.X, self.y, epochs=epochs, rate=3e-4, masks=masks, decay=True)

    def rows(self, target: float, methods: Sequence[str], keep: int, seconds: float) -> Iterator[tuple[Any, ...]]:
        """(method, network, CPU seconds)."""
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": 1e-3}
        for name in methods:
            begin = time.process_time()
            if name in ("trim", "layers"):
                epochs = self.epochs if name == "trim" else 0
                found = trim(
                    self.net, self.X, self.y, target=target, lam=self.lam, epochs=epochs, growth=1.5,
                    time_limit=None if name == "trim" else seconds, **options,
                )  # fmt: skip
                lam = max(row.lam for row in found.report.layers)
                yield f"{name} to lambda {lam:.1e}", found.network, time.process_time() - begin
                yield f"{name}, tuned", self.tuned(found.network), time.process_time() - begin
                if name == "trim":
                    keep, seconds, self.lam = found.report.nonzeros, time.process_time() - begin, lam
            elif name == "magnitude":
                pruned, masks = magnitude_prune(self.net, keep)
                yield name, pruned, time.process_time() - begin
                yield f"{name}, tuned", self.tuned(pruned, masks), time.process_time() - begin
                longer = self.tuned(pruned, masks, max(1, int(seconds / self.epoch)))
                yield f"{name}, tuned as long", longer, time.process_time() - begin
            elif name == "proxgrad":
                found = trim(
                    self.net, self.X, self.y, lam=self.lam, method="proxgrad", epochs=0, sweeps=1000,
                    time_limit=seconds, **options,
                )  # fmt: skip
                yield name, found.network, time.process_time() - begin
            else:
                epochs = max(1, int(seconds / self.epoch) - TUNING)
                dense = self.net.copy().fit(self.X, self.y, epochs=epochs, l1=self.lam, decay=True)
                pruned, masks = magnitude_prune(dense, keep)
                yield f"{name}, largest", pruned, time.process_time() - begin
                yield f"{name}, tuned", self.tuned(pruned, masks), time.process_time() - begin


def theorem_rows(
    X: Any, y: Any, net: Network, lam: float = 1e-2, max_iter: int = 1500
) -> Iterator[tuple[str, int, int, int, int, int, float]]:
    """(layer, weights, non-zeros, bound N k_S, kinks, samples times labels, how far from stationary) of each layer
    trimmed alone. The last is the largest violation of the optimality conditions over lambda: 0 if stationary."""
    for j in range(len(net.weights)):
        small = trim(net, X, y, lam=lam, layers=[str(j)], tol=1e-6, max_iter=max_iter).network
        layer, w = small.layer(j, X, y), small.weights[j].ravel()
        layer.value(w)
        slope = layer.gradient(w, None)
        off = np.where(w != 0, np.abs(slope + lam * np.sign(w)), np.maximum(np.abs(slope) - lam, 0)).max() / lam
        yield (
            str(j),
            w.size,
            int(np.count_nonzero(w)),
            layer.support(),
            layer.kinks(),
            y.size * net.sizes[-1],
            float(off),
        )


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
        small = trim(net, X, y, target=target, max_iter=max_iter, epochs=20, growth=1.5)
        yield target, row("trim", small.network, begin)
        yield target, row("trim, tuned", fit(copy.deepcopy(small.network), 100, 1e-3, small.masks), begin)
        seconds = time.perf_counter() - begin
        kept = {layer: int(mask.sum()) for layer, mask in small.masks.items()}
        counts = {"magnitude": None, "magnitude, even": even_counts(net, kept), "magnitude, as trim": kept}
        for name, by_layer in counts.items():
            begin = time.perf_counter()
            pruned, masks = prune_module(net, kept, by_layer)
            yield target, row(name, pruned, begin)
            yield target, row(f"{name}, tuned", fit(pruned, 100, 1e-3, masks), begin)  # then to the seconds of trim
            if (rest := seconds - (time.perf_counter() - begin)) > 0:
                more = round(100 * rest / (time.perf_counter() - begin))
                yield target, row(f"{name}, tuned as long", fit(pruned, more, 1e-3, masks), begin)


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
    parser.add_argument("--train", type=int, help="samples; all but 5000, with --theorem 100")
    parser.add_argument("--epochs", type=int, help="of Adam before; 15, with --theorem 80")
    parser.add_argument("--hidden", help="512,512; with --theorem 48,48")
    parser.add_argument("--targets", default="0.1")
    parser.add_argument("--lam", type=float, default=1.5e-4, help="where lambda begins; with --keep, lambda")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--adam", type=int, default=10, help="epochs of Adam before a sweep of trim")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each baseline, if trim is not run")
    parser.add_argument("--keep", type=int, default=34000, help="weights of the baselines, if trim is not run")
    parser.add_argument("--loss", default="softmax")
    parser.add_argument("--iterations", type=int, default=3, help="quasi-Newton steps a layer and sweep")
    parser.add_argument("--network", type=Path, help="npz file: the trained network is kept there for later runs")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if unknown := set(args.methods.split(",")) - set(METHODS):
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    targets = [float(t) for t in args.targets.split(",")]
    if args.digits:
        if importlib.util.find_spec("torch") is None:
            parser.error("--digits needs torch: pip install fginfer[torch,learn]")
        for target, row in digits_rows(targets, args.iterations):
            print_row(target, *row)
        return
    if args.folder is None:
        parser.error("give the FOLDER with ocr/ocr.npz, or --digits")
    X, y, Xt, yt = load(args.folder, args.train or (100 if args.theorem else 47152))
    hidden = [int(h) for h in (args.hidden or ("48,48" if args.theorem else "512,512")).split(",")]
    if args.theorem:
        net = Network([128, *hidden, 26], "margin").fit(X, y, epochs=args.epochs or 80)
        for name, size, left, bound, kinks, most, off in theorem_rows(X, y, net):
            print(
                f"layer {name}: {left} of {size} weights, bound N k_S {bound} + kinks {kinks} (N K {most}), "
                f"off stationarity by {off:.1e} lambda",
                flush=True,
            )
        return
    begin = time.process_time()
    net = trained(Network([128, *hidden, 26], args.loss, dtype=np.float32), X, y, args.epochs or 15, args.network)
    points: dict[str, list[tuple[int, float]]] = {}

    def note(target: float, name: str, small: Network, seconds: float) -> None:
        size, accuracy = sum(small.nonzeros), small.accuracy(Xt, yt)
        print_row(target, name, size, accuracy, seconds)
        points.setdefault(name, []).append((size, accuracy))

    note(1.0, "trained", net, time.process_time() - begin)
    contest = Contest(X, y, net, args.lam, args.iterations, args.adam)
    for target in sorted(targets, reverse=True):
        for row in contest.rows(target, args.methods.split(","), args.keep, args.seconds):
            note(target, *row)
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
