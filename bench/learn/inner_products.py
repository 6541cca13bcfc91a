"""Maximum inner-product search and the losses that stand on it: indexes, decomposition, classifiers, words.

    python -m bench inner_products --part index [--k 100000] [--d 32 128] [--rows clustered isotropic trained] [--peers]
    python -m bench inner_products --part table [--k 10000 100000 1000000] [--d 16 32 64 128 256] [--rows ...] [--peers]
    python -m bench inner_products --part topk [--k 100000] [--d 32 128] [--rows clustered trained]
    python -m bench inner_products --part loss [--k 20000] [--data FOLDER]
    python -m bench inner_products --part multiclass [--k 100000] [--samples 100000] [--epochs 1] [--seconds 60]
    python -m bench inner_products --part pinyin --data FOLDER [--seconds 20]
    python -m bench inner_products --part multilabel --data FOLDER [--sets tags depends] [--seconds 20]
    python -m bench inner_products --part words --data FOLDER [--passes 4] [--lines 20000] [--methods GD-MIPS gensim]

FOLDER holds zh_pinyin/ and debian/. Times are CPU seconds of one thread, side by side in one run; a dense scan is BLAS
over a batch and a selection with numpy (see inner_products_index.py). Every result is printed as it comes. --plot
FILE.png draws quality and objective against seconds and epochs, and errors of losses against their time;
--methods Margin Decomp-MIPS runs these only.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.learn import inner_products_learning as learning
from bench.learn.inner_products_index import bench_index, bench_table, bench_topk


def plot(path: str) -> None:
    """A row of panels for every title: quality and objective, against seconds and epochs; or errors against time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [
        (title, [(name, [(p[x], p[y]) for p in points]) for name, points in curves], label_x, label_y)
        for title, curves in learning.CURVES.items()
        for x, label_x in ((0, "CPU seconds"), (1, "epochs"))
        for y, label_y in (((3, "objective"),) if title == "words" else ((2, "test quality, %"), (3, "objective")))
    ]
    panels += [
        (title, [(name, [(p[0], p[y]) for p in sorted(points)]) for name, points in curves], "ms a sample", label_y)
        for title, curves in learning.ERRORS.items()
        for y, label_y in ((1, "relative error of the loss"), (2, "relative error of the gradient"))
    ]
    if not panels:
        print("--plot: this part has nothing to draw")
        return
    wide = min(4, len(panels))
    high = -(-len(panels) // wide)
    figure, axes = pyplot.subplots(high, wide, figsize=(5.5 * wide, 4 * high), squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, curves, label_x, label_y) in zip(axes.flat, panels, strict=False):
        for name, points in curves:
            axis.plot(*zip(*points, strict=True), marker="o", label=name)
        axis.set(title=title, xlabel=label_x, ylabel=label_y, xscale="log")
        axis.set_yscale("log" if "error" in label_y else "linear")
        axis.legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        "index": bench_index, "table": bench_table, "topk": bench_topk, "loss": learning.bench_loss,
        "multiclass": learning.bench_multiclass, "pinyin": learning.bench_pinyin,
        "multilabel": learning.bench_multilabel, "words": learning.bench_words,
    }  # fmt: skip
    parser.add_argument("--part", choices=parts, required=True)
    parser.add_argument("--k", type=int, nargs="+", default=[20_000], help="rows, labels")
    parser.add_argument("--d", type=int, nargs="+", default=[32, 128], help="index: columns")
    parser.add_argument("--rows", nargs="+", choices=["clustered", "isotropic", "trained"], default=["clustered"])
    parser.add_argument("--clusters", type=int, default=0, help="index: 0 is its own choice")
    parser.add_argument("--peers", action="store_true", help="index: hnswlib and faiss, too")
    parser.add_argument("--graph", type=int, nargs=2, default=[16, 200], help="index: M, ef_construction of hnswlib")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["tags", "depends"], help="multilabel")
    parser.add_argument("--methods", nargs="+", help="of multiclass, pinyin, multilabel, words")
    parser.add_argument("--labels", type=int, default=128, help="multiclass, pinyin: of a block searched by codes")
    parser.add_argument("--samples", type=int, default=100_000, help="multiclass: training images, of 19 an identity")
    parser.add_argument("--epochs", type=float, default=1.0, help="multiclass: at most; half of the first is sampled")
    parser.add_argument("--seconds", type=float, default=20.0, help="at most, for each method")
    parser.add_argument("--passes", type=int, default=4, help="words")
    parser.add_argument("--lines", type=int, default=10**9, help="words: descriptions")
    parser.add_argument("--plot", metavar="FILE")
    args = parser.parse_args()
    if args.data is None and args.part in ("pinyin", "multilabel", "words"):
        parser.error(f"--part {args.part} needs --data")
    parts[args.part](args)
    if args.plot:
        plot(args.plot)


if __name__ == "__main__":
    main()
