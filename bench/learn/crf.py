"""Sparse conditional random fields: our optimisers, CRFsuite and Wapiti on one objective, side by side.

usage: python -m bench crf DATASETS [--part ocr conll pinyin labels hierarchy tail threads splits] [--l1 X]
       [--examples N] [--methods ...] [--crfsuite ITERATIONS] [--wapiti PROGRAM-OR-FOLDER] [--rival-limit CPU-SECONDS]
       [--limit SECONDS] [--runs FOLDER] [--threads N] [--plots FOLDER]

DATASETS is a folder with ocr/ocr.npz, conll2000/, zh_pinyin/. Times are CPU seconds. For every method: seconds and
passes to relative objective differences of 1e-2, 1e-3, 1e-4, 1e-6 and 1e-8 against the best of all, and at its end
objective (how far above the best), non-zeros, violation of optimality and what the model gets right on test data.
CRFsuite (python-crfsuite) runs with c1 = l1, c2 = 0 and all states and transitions possible, so that its objective is
the same; see crf_rivals.py for it and for Wapiti. sgd has no stopping rule and makes 30 passes; noshrink is
proxqn on all coordinates. `--examples` takes the first N training examples, with l1 scaled by the share. `--plots`
draws objective and non-zeros against time and passes, and accuracy against time (Figures 1, 2, 7 and 8 of Zhong et al.
2014).

With `--runs` what was run is kept in a folder: the same command with `--limit 120`, given again, goes on where it was,
and methods can be run one by one. The other parts: pinyin (candidate lists), labels (all labels of pinyin on 500
sequences, and pruning), hierarchy (a taxonomy of characters and the flat multinomial), and on OCR: tail (how fast the
last steps are; what they would be with exact models and more digits), threads (one against two), splits (non-zeros and
accuracies of several random splits).
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from bench.learn.crf_parts import all_labels, split, threads
from bench.learn.crf_rivals import run_crfsuite, run_wapiti
from bench.learn.crf_runs import Runs, draw, report, run_ours
from bench.learn.crf_tail import exact_tail, tail
from fginfer.learn import ChainCRF, Example, HierarchicalCRF
from fginfer.learn.data.features import WindowFeatures, default_templates
from fginfer.learn.data.readers import read_conll
from fginfer.learn.metrics import chunk_f1

PARTS = ("ocr", "conll", "pinyin", "labels", "hierarchy", "tail", "threads", "splits")
METHODS = ("proxqn", "owlqn", "proxgrad", "bcd")


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


def side_by_side(title, train, test, measure, l1, args, make):
    tokens = len(train[1])
    print(f"\n{title}: {len(train[2]) - 1 if len(train) > 2 else tokens} examples, {tokens} tokens, l1 {l1:g}")
    runs = Runs(args.runs, f"{title} {l1:g} {args.examples or 'all'}")
    named = {}

    def right(crf):
        return measure(crf.predict(test[0], *test[2:]), test[1], test[2] if len(test) > 2 else None)

    for method in args.methods:
        named[method] = run_ours(runs, method, make(method), train, args.limit, right)
        print(
            f"{method} ran for {named[method].seconds:.1f} s", flush=True
        )  # a run broken off later has said something
    if args.crfsuite:
        named["crfsuite"] = run_crfsuite(runs, train, l1, args.crfsuite, args.rival_limit)
    if args.wapiti:
        named["wapiti"] = run_wapiti(runs, args.wapiti, train, l1, args.crfsuite or 1000, args.rival_limit)
    for name in [name for name, run in named.items() if not run.trace]:
        print(f"{name}: no step within the limit")
        del named[name]
    if not named:
        return
    best = report(named)
    if args.plots:
        draw(runs, named, best, args.plots)


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
        own = {} if method == "sgd" else {"memory": args.memory}
        if method in ("proxqn", "noshrink"):
            own = {**options, "shrink": method == "proxqn"}
        solver = "proxqn" if method == "noshrink" else method
        return ChainCRF(
            l1=l1, solver=solver, tol=args.tol, fit_intercept=False, n_jobs=args.threads, solver_options=own
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
    choices = {s: tuple(sorted(seen)) for s, seen in readings.items()}
    lists = [choices[s] for syllables, _ in rows for s in syllables]
    test = [r for r in pinyin(folder, "test", 0) if all(s in known for s in r[0])]
    others = Example(window(test, known), candidates=[choices[s] for syllables, _ in test for s in syllables])
    l1 = args.l1 or 1.0

    def make(method):
        return ChainCRF(l1=l1, solver=method, tol=args.tol, fit_intercept=False, n_jobs=args.threads)

    title = f"pinyin with candidates, {len(set(y))} characters"
    truth = np.array([c for _, characters in test for c in characters])
    side_by_side(title, (Example(X, candidates=lists), y, begin),
                 (others, truth, np.concatenate([[0], np.cumsum([len(s) for s, _ in test])])),
                 accuracy, l1, args, make)  # fmt: skip


def every_label(args):
    """All labels of the training data at every token of 500 sequences."""
    rows = pinyin(Path(args.datasets), "train", 0)
    labels = sorted({c for _, characters in rows for c in characters})
    rows = rows[: args.examples or 500]
    known = {s: k for k, s in enumerate(sorted({s for syllables, _ in rows for s in syllables}))}
    y = np.array([c for _, characters in rows for c in characters])
    begin = np.concatenate([[0], np.cumsum([len(s) for s, _ in rows])])
    print(f"\nall labels: {len(rows)} sequences, {len(y)} tokens, {len(labels)} labels")
    for l1 in [args.l1] if args.l1 else [0.001, 0.1, 1.0]:
        all_labels(window(rows, known), y, begin, np.array(labels), l1, min(5, len(rows)))


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
    for title in args.labels:
        taxonomy = tree if title == "taxonomy" else None

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
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=[*METHODS, "sgd", "noshrink"])
    parser.add_argument("--crfsuite", type=int, metavar="ITERATIONS", help="also run CRFsuite, for so many at most")
    parser.add_argument("--wapiti", metavar="PROGRAM", help="also run Wapiti; or a folder to build it in, from PyPI")
    parser.add_argument("--rival-limit", type=float, help="CPU seconds that CRFsuite and Wapiti may train")
    parser.add_argument("--limit", type=float, help="seconds a run, by the clock")
    parser.add_argument("--runs", metavar="FOLDER", help="keep the runs there, and go on with those that are there")
    parser.add_argument("--labels", nargs="+", default=["taxonomy", "flat"], choices=["taxonomy", "flat"])
    parser.add_argument("--seeds", type=int, default=3, help="splits of OCR")
    parser.add_argument("--first-seed", type=int, default=0)
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
        elif part == "splits":
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                split(seed, *ocr(Path(args.datasets), seed)[:2], args.l1 or 100.0, args.tol)
        else:
            train, _, _, l1 = first_examples(ocr, args.l1 or 100.0, args)
            if part == "tail":
                tail(train, l1)
                exact_tail(train, l1)
            else:
                threads(train, l1)


if __name__ == "__main__":
    sys.exit(main())
