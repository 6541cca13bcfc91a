"""Sparse conditional random fields: our optimisers, CRFsuite and Wapiti on one objective, side by side in one run.

usage: python bench/crf.py DATASETS [--part ocr conll pinyin labels hierarchy accuracy tail threads] [--l1 X]
       [--examples N] [--methods ...] [--crfsuite ITERATIONS] [--wapiti PROGRAM] [--limit SECONDS] [--threads N]
       [--plots FOLDER]

DATASETS is a folder with ocr/ocr.npz, conll2000/, zh_pinyin/. Times are CPU seconds. For every method: seconds and
passes to relative objective differences of 1e-2, 1e-3, 1e-4 and 1e-6 against the best of all, and at its end objective,
non-zeros and what the model gets right on test data. CRFsuite (python-crfsuite) runs with c1 = l1, c2 = 0 and all
states and transitions possible, so that its objective is the same; see bench/crf_rivals.py for it and for Wapiti. sgd
has no stopping rule and makes 30 passes. `--examples` takes the first N training examples, with l1 scaled by the share.
`--plots` writes relative objective difference and non-zeros against time and passes (Figures 1, 2 and 8 of Zhong et al.
2014). The other parts: pinyin (candidate lists), labels (all labels of pinyin on 500 sequences, and pruning), hierarchy
(a taxonomy of characters and the flat multinomial), and on OCR: accuracy (on test data against time, Figure 7), tail
(how fast the last steps are), threads (one against two).
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from crf_parts import accuracy_against_time, all_labels, tail, threads
from crf_rivals import run_crfsuite, run_wapiti

from fginfer.learn import ChainCRF, Example, HierarchicalCRF
from fginfer.learn.data.features import WindowFeatures, default_templates
from fginfer.learn.data.readers import read_conll
from fginfer.learn.metrics import chunk_f1

PARTS = ("ocr", "conll", "pinyin", "labels", "hierarchy", "accuracy", "tail", "threads")
METHODS = ("proxqn", "owlqn", "proxgrad", "bcd")
LEVELS = (1e-2, 1e-3, 1e-4, 1e-6)


# ---- data: (X, y, offsets) of training and test, and what to measure on the test


def ocr(folder, seed=0, train=6216):
    """Words with degree-2 pixels: 128 pixels, 8128 pairs, a bias."""
    data = np.load(folder / "ocr" / "ocr.npz")
    pixels, y, offsets = data["X"].astype(bool), data["y"], data["offsets"]
    left, right = np.triu_indices(128, 1)
    order = np.random.default_rng(seed).permutation(len(offsets) - 1)

    def part(words):
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in words])
        begin = np.concatenate([[0], np.cumsum([offsets[i + 1] - offsets[i] for i in words])])
        blocks = []
        for s in range(0, len(rows), 4096):
            p = pixels[rows[s : s + 4096]]
            blocks.append(sp.csr_matrix(np.hstack([p, p[:, left] & p[:, right], np.ones((len(p), 1), bool)])))
        return sp.vstack(blocks).astype(float).tocsr(), y[rows], begin

    return part(np.sort(order[:train])), part(np.sort(order[train:])), accuracy


def conll(folder):
    parts = []
    features = None
    for name in ("train", "test"):
        sentences = read_conll(folder / "conll2000" / f"{name}.txt.gz")
        inputs = [[token[:2] for token in sentence] for sentence in sentences]
        if features is None:
            features = WindowFeatures(default_templates(2), 1, 0).fit(inputs)
        X, begin = features.transform(inputs)
        parts.append((X, np.array([token[2] for sentence in sentences for token in sentence]), begin))
    return (*parts, f1)


def accuracy(answers, y, begin):
    return float(np.mean(answers == y))


def f1(answers, y, begin):
    return chunk_f1(np.split(y, begin[1:-1]), np.split(answers, begin[1:-1]))


# ---- runs


def run_ours(method, make, train, limit):
    seconds: list[float] = []
    start = time.process_time()
    crf = make(method)
    crf.set_params(
        callback=lambda p: seconds.append(time.process_time() - start), max_iter=30 if method == "sgd" else 100_000
    )
    if limit:
        crf.set_params(time_limit=limit)
    crf.fit(*train)
    trace = [(s, p.passes, p.objective, p.nonzeros) for s, p in zip(seconds, crf.history_, strict=False)]
    return trace, crf, time.process_time() - start


def side_by_side(title, train, test, measure, l1, args, make):
    tokens = train[0].shape[0]
    print(f"\n{title}: {len(train[2]) - 1 if len(train) > 2 else tokens} examples, {tokens} tokens, l1 {l1:g}")
    runs = {}
    for method in args.methods:
        runs[method] = run_ours(method, make, train, args.limit)
        print(f"{method} ran for {runs[method][2]:.1f} s", flush=True)  # a run broken off later has said something
    if args.crfsuite:
        runs["crfsuite"] = run_crfsuite(train, l1, args.crfsuite)
    if args.wapiti:
        runs["wapiti"] = run_wapiti(args.wapiti, train, l1, args.crfsuite or 1000)
    for name in [name for name, (trace, _, _) in runs.items() if not trace]:
        print(f"{name}: no step within the limit")
        del runs[name]
    if not runs:
        return
    best = min(trace[-1][2] for trace, _, _ in runs.values())
    print(f"best objective {best:.6f}")
    print(f"{'method':<10}" + "".join(f"{f'{level:g}':>16}" for level in LEVELS) + f"{'objective':>16}{'nonzeros':>10}"
          f"{'all s':>8}{'test':>8}")  # fmt: skip
    reached = {}
    for name, (trace, crf, total) in runs.items():
        cells = []
        for level in LEVELS:
            hit = next(((s, p) for s, p, f, _ in trace if f <= best * (1 + level)), None)
            reached[name, level] = hit
            cells.append("-" if hit is None else f"{hit[0]:.1f} s/{hit[1]}")
        right = ""
        if crf is not None and test is not None:
            begin = test[2] if len(test) > 2 else None
            right = f"{measure(crf.predict(test[0], *test[2:]), test[1], begin):.4f}"
        last = trace[-1]
        end = f"{last[2]:>16.4f}{last[3]:>10}{total:>8.1f}{right:>8}"
        print(f"{name:<10}" + "".join(f"{cell:>16}" for cell in cells) + end, flush=True)
    for other in runs:
        if other != "proxqn" and reached.get(("proxqn", 1e-4)) and reached.get((other, 1e-4)):
            ratio = reached[other, 1e-4][0] / reached["proxqn", 1e-4][0]
            print(f"to 1e-4: proxqn {ratio:.1f} times as fast as {other}")
    if args.plots:
        plot(title, runs, best, Path(args.plots))


def plot(title, runs, best, folder):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 3, figsize=(15, 4))
    for name, (trace, _, _) in runs.items():
        s, p, f, n = map(np.array, zip(*trace, strict=True))
        error = np.maximum((f - best) / best, 1e-12)
        axes[0].semilogy(s, error, label=name)
        axes[1].semilogy(p, error, label=name)
        axes[2].semilogy(s, n, label=name)
    for axis, x, y in zip(axes, ("CPU seconds", "values and gradients", "CPU seconds"),
                          ("relative objective difference",) * 2 + ("non-zeros",), strict=True):  # fmt: skip
        axis.set_xlabel(x), axis.set_ylabel(y), axis.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(folder / f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.png", dpi=120)


def first_examples(load, l1, args):
    """(train, test, measure, l1) of the first examples, with a share of l1."""
    train, test, measure = load(Path(args.datasets))
    if args.examples:
        l1 *= args.examples / (len(train[2]) - 1)
        train = train[0][: train[2][args.examples]], train[1][: train[2][args.examples]], train[2][: args.examples + 1]
        seen = np.flatnonzero(np.bincount(train[0].indices, minlength=train[0].shape[1]))  # CRFsuite has no others
        train, test = (train[0][:, seen], *train[1:]), (test[0][:, seen], *test[1:])
    return train, test, measure, l1


def chains(title, load, l1, args):
    train, test, measure, l1 = first_examples(load, l1, args)
    options = {"memory": args.memory, "max_inner": args.max_inner}

    def make(method):
        own = options if method == "proxqn" else {} if method == "sgd" else {"memory": args.memory}
        return ChainCRF(
            l1=l1, solver=method, tol=args.tol, fit_intercept=False, n_jobs=args.threads, solver_options=own
        )

    side_by_side(title, train, test, measure, l1, args, make)


# ---- pinyin: candidate lists, and a taxonomy of characters


def pinyin(folder, name, n):
    rows = []
    with gzip.open(folder / "zh_pinyin" / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            syllables, characters = line.rstrip("\n").split("\t")
            if len(syllables.split()) == len(characters):
                rows.append((syllables.split(), list(characters)))
            if n and len(rows) >= n:
                break
    return rows


def window(rows, known, width=1):
    """Syllables at -width .. width, one column each place and syllable."""
    columns, begin = [], [0]
    for syllables, _ in rows:
        for t in range(len(syllables)):
            for k, at in enumerate(range(t - width, t + width + 1)):
                if 0 <= at < len(syllables) and syllables[at] in known:
                    columns.append(k * len(known) + known[syllables[at]])
            begin.append(len(columns))
    shape = (len(begin) - 1, (2 * width + 1) * len(known))
    return sp.csr_matrix((np.ones(len(columns)), np.array(columns, np.int32), np.array(begin)), shape=shape)


def large_labels(args):
    folder = Path(args.datasets)
    rows = pinyin(folder, "train", args.examples or 0)
    known = {s: k for k, s in enumerate(sorted({s for syllables, _ in rows for s in syllables}))}
    readings: dict[str, set[str]] = {}
    for syllables, characters in rows:
        for s, c in zip(syllables, characters, strict=True):
            readings.setdefault(s, set()).add(c)
    X = window(rows, known)
    begin = np.concatenate([[0], np.cumsum([len(s) for s, _ in rows])])
    y = np.array([c for _, characters in rows for c in characters])
    lists = [tuple(sorted(readings[s])) for syllables, _ in rows for s in syllables]
    l1 = args.l1 or 1.0
    print(f"\npinyin with candidates: {len(rows)} sequences, {X.shape[0]} tokens, {len(set(y))} labels, l1 {l1:g}")
    crf = ChainCRF(l1=l1, tol=args.tol, fit_intercept=False, n_jobs=args.threads, time_limit=args.limit or 600)
    start = time.process_time()
    crf.fit(Example(X, candidates=lists), y, begin)
    last = crf.history_[-1]
    seconds = time.process_time() - start
    print(f"{crf.status_} after {last.steps} steps, {seconds:.1f} s: objective {last.objective:.1f}, "
          f"{last.nonzeros} non-zeros, violation {last.violation:.1e}")  # fmt: skip
    test = [r for r in pinyin(folder, "dev", 2000) if all(s in known for s in r[0])]
    right = sum(len(c) for _, c in test)
    answers = crf.predict(
        Example(window(test, known), candidates=[tuple(sorted(readings[s])) for s_, _ in test for s in s_]),
        np.concatenate([[0], np.cumsum([len(s) for s, _ in test])]),
    )
    print(f"test accuracy {np.mean(answers == np.array([c for _, cs in test for c in cs])):.4f} of {right} characters")


def every_label(args):
    """All labels of the training data at every token of 500 sequences."""
    rows = pinyin(Path(args.datasets), "train", 0)
    labels = sorted({c for _, characters in rows for c in characters})
    rows = rows[: args.examples or 500]
    known = {s: k for k, s in enumerate(sorted({s for syllables, _ in rows for s in syllables}))}
    y = np.array([c for _, characters in rows for c in characters])
    begin = np.concatenate([[0], np.cumsum([len(s) for s, _ in rows])])
    print(f"\nall labels: {len(rows)} sequences, {len(y)} tokens, {len(labels)} labels")
    all_labels(window(rows, known), y, begin, np.array(labels), args.l1 or 0.001, min(5, len(rows)))


def hierarchy(args):
    """Characters under their most frequent syllable under its initial; tokens with a window of two syllables aside."""
    folder = Path(args.datasets)
    rows = pinyin(folder, "train", 0)
    known = {s: k for k, s in enumerate(sorted({s for syllables, _ in rows for s in syllables}))}
    counts: dict[str, dict[str, int]] = {}
    for syllables, characters in rows:
        for s, c in zip(syllables, characters, strict=True):
            counts.setdefault(c, {})[s] = counts.setdefault(c, {}).get(s, 0) + 1
    tree = {}
    for c, seen in counts.items():
        s = max(sorted(seen), key=lambda name: seen[name])
        initial = re.match(r"(zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw]?)", s).group()
        tree[c], tree["syllable " + s] = "syllable " + s, "initial " + initial
        tree["initial " + initial] = None
    X = window(rows, known)
    y = np.array([c for _, characters in rows for c in characters])
    chosen = np.random.default_rng(0).permutation(len(y))
    n = args.examples or 50_000
    train, test = np.sort(chosen[:n]), np.sort(chosen[n : n + 10_000])
    l1 = args.l1 or 1.0
    for title, taxonomy in (("taxonomy", tree), ("flat", None)):

        def make(method, taxonomy=taxonomy):
            return HierarchicalCRF(taxonomy=taxonomy, l1=l1, solver=method, tol=args.tol, n_jobs=args.threads)

        side_by_side(f"pinyin {title}", (X[train], y[train]), (X[test], y[test]),
                     lambda a, b, _: float(np.mean(a == b)), l1, args, make)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets")
    parser.add_argument("--part", nargs="+", default=["ocr", "conll"], choices=PARTS)
    parser.add_argument("--l1", type=float, help="default: 100 for ocr, 1 for the others")
    parser.add_argument("--examples", type=int, help="training examples (l1 is scaled with them for ocr and conll)")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=[*METHODS, "sgd"])
    parser.add_argument("--crfsuite", type=int, metavar="ITERATIONS", help="also run CRFsuite, for so many at most")
    parser.add_argument("--wapiti", metavar="PROGRAM", help="also run Wapiti, as often as CRFsuite")
    parser.add_argument("--limit", type=float, help="seconds a run")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--memory", type=int, default=10)
    parser.add_argument("--max-inner", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plots")
    args = parser.parse_args()
    for part in args.part:
        if part == "ocr":
            chains("OCR, degree-2 pixels", ocr, args.l1 or 100.0, args)
        elif part == "conll":
            chains("CoNLL-2000", conll, args.l1 or 1.0, args)
        elif part == "pinyin":
            large_labels(args)
        elif part == "labels":
            every_label(args)
        elif part == "hierarchy":
            hierarchy(args)
        else:
            train, test, measure, l1 = first_examples(ocr, args.l1 or 100.0, args)
            if part == "accuracy":
                accuracy_against_time(train, test, measure, l1, args)
            else:
                (tail if part == "tail" else threads)(train, l1)


if __name__ == "__main__":
    sys.exit(main())
