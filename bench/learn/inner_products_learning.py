"""Learning parts of inner_products.py: how far losses by search are off, classifiers, words."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.common.clock import cpu
from bench.learn.inner_products_data import Data, debian, descriptions, faces, pinyin
from fginfer.core import clock
from fginfer.learn import EmbeddingClassifier
from fginfer.learn.embedding.descent import SkipGramDescent
from fginfer.learn.embedding.sgd import EmbeddingSgd, Samples, SgdSettings, last_layer_input
from fginfer.learn.embedding.text import read_text
from fginfer.learn.losses import EmbeddingLoss, flat_positives

# title -> [(method, [(seconds, epochs, quality, objective)])]: what --plot draws
CURVES: dict[str, list[tuple[str, list[tuple[float, float, float, float]]]]] = {}
# title -> [(method, [(ms a sample, relative error of the loss, of the gradient, multiplications)])]
ERRORS: dict[str, list[tuple[str, list[tuple[float, ...]]]]] = {}


# ---- losses on rows and queries of a trained model


def trained_models(args: argparse.Namespace) -> Any:
    """(name, rows, queries, their positives) of models trained for a while."""
    k = args.k[0]
    for alike, name in ((1.0, "faces in families"), (0.0, "faces without families")):
        data = faces(k, 128, 20, some=6 * k, alike=alike)
        model = EmbeddingClassifier(method="search", probes=2, eta0=4.0, max_iter=1, fit_intercept=False)
        model.fit(data.X, data.y)
        right = model.score(data.X_test[:2000], data.y_test[:2000])
        print(f"\n{name}, K = {k}, D = 128, trained to accuracy {right:.3f}", flush=True)
        yield name, model.rows_, data.X_test[:300], [[y] for y in data.y_test[:300]]
    if args.data:
        data = debian(args.data, "depends")
        model = EmbeddingClassifier(
            "multilabel", "cross-entropy", "sampled", hidden=100, eta0=0.1, fit_intercept=False, time_limit=args.seconds
        ).fit(data.X, data.y)
        known = {label: number for number, label in enumerate(model.classes_.tolist())}
        positives = [[known[k] for k in row if k in known] for row in data.y_test[:400]]
        use = [i for i, row in enumerate(positives) if row][:300]
        right = model.score(data.X_test[:2000], data.y_test[:2000])
        print(f"\ndepends, hidden layer of 100, trained to P@1 {right:.3f}", flush=True)
        yield "depends", model.rows_, model.embed(data.X_test[use]), [positives[i] for i in use]


def plans() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Families of settings; each becomes a curve of error against time."""
    out: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "search": [(f"{p} probes", {"method": "search", "probes": p}) for p in (1, 2, 4, 8, 16, 32, 64)]
    }
    out["search by codes"] = [(f"{c} candidates", {"method": "search", "candidates": c}) for c in (1, 400, 1600)]
    out["search by codes"] += [
        (f"{q} labels", {"method": "search", "candidates": 1, "queries": q}) for q in (64, 128, 256, 512)
    ]
    for blocks in (4, 8):
        out[f"decomposed {blocks}"] = [
            (f"{p} probes, {keep} kept", {"method": "decomposed", "blocks": blocks, "probes": p, "keep": keep})
            for p, keep in ((1, 16), (1, 64), (2, 64), (4, 64), (8, 128))
        ]
        printed = {"method": "decomposed", "blocks": blocks, "keep": 0, "finish": "blocks", "rest": "zero"}
        out[f"decomposed {blocks} as printed"] = [(f"{p} probes", {**printed, "probes": p}) for p in (1, 4)]
    for blocks in (2, 4):
        by_codes = {"method": "decomposed", "blocks": blocks, "candidates": 1, "keep": 64}
        out[f"decomposed {blocks} by codes"] = [
            (f"{q} labels, 64 kept", {**by_codes, "queries": q}) for q in (64, 128, 256)
        ]  # fmt: skip
    out["search, others 0"] = [
        (f"{p} probes", {"method": "search", "probes": p, "rest": "zero"}) for p in (1, 4, 16)
    ]  # fmt: skip
    return out


def bench_loss(args: argparse.Namespace) -> None:
    for name, rows, x, positives in trained_models(args):
        for loss in ("margin", "cross-entropy"):
            truth = EmbeddingLoss(rows, loss, "exact").evaluate(x, positives)
            norm = sp.linalg.norm(truth.gradient)
            begin, flat, _ = flat_positives(positives, len(x), len(rows))
            errors: dict[str, list[tuple[float, ...]]] = {}
            for family, settings in plans().items():
                for label, options in settings:
                    model = EmbeddingLoss(rows, loss, **options)
                    ask = partial(model.values, x, begin, flat, None)
                    spent, (values, _) = min((cpu(ask) for _ in range(3)), key=lambda pair: pair[0])
                    value = float(np.abs(values - truth.values).sum() / truth.values.sum())
                    gradient = float(sp.linalg.norm(model.gradient() - truth.gradient) / norm)
                    products = multiplications(model) / 3 / len(x)
                    errors.setdefault(family, []).append((1e3 * spent / len(x), value, gradient, products))
                    print(
                        f"  {loss:13} {family:23} {label:18} {1e3 * spent / len(x):6.3f} ms"
                        f" {products / 1e3:6.0f} thousand multiplications  loss off by {value:.4f},"
                        f" gradient {gradient:.4f}",
                        flush=True,
                    )
            ERRORS[f"{name}, {loss}"] = list(errors.items())
            compare(loss, errors)


def multiplications(model: EmbeddingLoss) -> int:
    """Products of rows and queries: in the searches of the blocks, and for scores of whole rows beside them."""
    searched = sum(index.counts.rows_touched * index.shape[1] for index in model.indexes)
    return searched + (model.touched - sum(i.counts.rows_touched for i in model.indexes)) * model.rows.shape[1]


def compare(loss: str, errors: dict[str, list[tuple[float, ...]]]) -> None:
    """What plain search reaches in the time, and with the multiplications, of every decomposed search. (Those of codes
    and bytes are not counted, so by codes only time is compared.)"""
    for family, points in errors.items():
        if not family.startswith("decomposed") or family.endswith("as printed"):
            continue
        coded = family.endswith("by codes")
        plain = sorted(errors["search by codes" if coded else "search"])
        for spent, value, gradient, products in points:
            line = f"    {loss}, {family}: loss {value:.4f}, gradient {gradient:.4f}; search"
            for what, at, most in (("by then", 0, spent), ("with as many multiplications", 3, products))[: 2 - coded]:
                ready = [p for p in plain if p[at] <= most] or plain[:1]
                line += f", {what}: {min(p[1] for p in ready):.4f}, {min(p[2] for p in ready):.4f}"
            print(line)


# ---- classifiers


def methods(mu: float, blocks: int, eta: dict[str, float], **base: Any) -> dict[str, dict[str, Any]]:
    base = {"fit_intercept": False, **base}
    soft = {**base, "loss": "cross-entropy", "eta0": eta["softmax"]}
    margin = {**base, "loss": "margin", "mu": mu, "eta0": eta["margin"]}
    return {
        "Sampled-Softmax": {**soft, "method": "sampled"},
        "Decomp-MIPS": {**margin, "method": "decomposed", "probes": 2, "blocks": blocks, "keep": 64},
        "MIPS": {**margin, "method": "search", "probes": 2},
        "Margin": {**margin, "method": "exact"},
        "Softmax": {**soft, "method": "exact"},
    }


def quality(model: EmbeddingClassifier, solver: EmbeddingSgd, data: Data, most: int) -> list[float]:
    """Test accuracy; multilabel: P@1, P@3, P@5."""
    step = max(1, data.X_test.shape[0] // most)  # test rows may be in some order: every so many-th
    X, y = data.X_test[::step], data.y_test[::step]
    at = (1,) if model.task == "multiclass" else (1, 3, 5)
    right = np.zeros(len(at))
    for i in range(0, X.shape[0], 256):
        scores = last_layer_input(X[i : i + 256], solver.hidden, False) @ solver.rows.T
        best = np.argpartition(-scores, at[-1] - 1, axis=1)[:, : at[-1]]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)
        names = model.classes_[best]
        for row, true in zip(names, y[i : i + 256], strict=True):
            hit = [label in true if model.task == "multilabel" else label == true for label in row]
            right += [sum(hit[:k]) / k for k in at]
    return (100 * right / X.shape[0]).tolist()


class SameStart(EmbeddingSgd):
    """Every method, exact ones too, begins with sampled_epochs of its loss at 100 sampled labels: without that a search
    would be compared with an exact loss that has another start. (The learner itself samples only before a search.)"""

    def __init__(self, data: Samples, settings: SgdSettings) -> None:
        super().__init__(data, settings)
        early = {**settings.loss, "queries": min(100, data.n_labels), "probes": None, "candidates": None}
        self.late, self.early = settings, replace(settings, method="sampled", loss=early)

    def _batch(self, which: np.ndarray) -> None:
        now = self.early if self.epoch + self.at / len(self.data) < self.late.sampled_epochs else self.late
        if now is not self.s:
            self.s, self._method = now, ""  # the loss is made anew
        super()._batch(which)


def train(
    title: str, data: Data, task: str, given: dict[str, dict[str, Any]], seconds: float, epochs: float = 1
) -> None:
    """Every method from the same start for so many epochs or CPU seconds, measured (off the clock) at times that grow
    fourfold."""
    print(f"\n{title}: {data.X.shape[0]} training samples, {epochs:g} epochs or {seconds:g} s each", flush=True)
    for name, options in given.items():
        model = EmbeddingClassifier(task, **options)
        model._check_settings()
        samples = model._samples(data.X, data.y)
        solver = SameStart(samples, model._sgd(0, samples.n_labels))
        spent, look, points = 0.0, 1.0, []
        while spent < seconds and done(solver) < epochs:
            begin = time.process_time()
            solver.advance(clock.now() + 0.25)
            spent += time.process_time() - begin
            if look <= spent < seconds and done(solver) < epochs:
                look = 4 * spent
                points.append(point(model, solver, data, spent, 500))
                here = (
                    f"{points[-1][1]:.2f} epochs in {spent:.1f} s: {points[-1][2]:.1f}, objective {points[-1][3]:.4f}"
                )
                print(f"    {name:16} {here}", flush=True)
        points.append(point(model, solver, data, spent, 10**9))
        calls = solver.counters()[0]
        final = " / ".join(f"{q:.2f}" for q in quality(model, solver, data, 10**9))
        print(
            f"  {name:16} {final}, objective {points[-1][3]:.4f}, {calls / len(samples):.2f} epochs in {spent:.1f} s,"
            f" {1e3 * spent / max(1, calls):.3f} ms a sample",
            flush=True,
        )
        CURVES.setdefault(title, []).append((name, points))


def done(solver: EmbeddingSgd) -> float:
    """Epochs, with the part of the one under way."""
    return solver.epoch + solver.at / len(solver.data)


def point(
    model: EmbeddingClassifier, solver: EmbeddingSgd, data: Data, spent: float, most: int
) -> tuple[float, float, float, float]:
    return spent, done(solver), quality(model, solver, data, most)[0], float(solver.measure().primal or 0.0)


def with_codes(given: dict[str, dict[str, Any]], labels: int) -> dict[str, dict[str, Any]]:
    """Four blocks, too, and searches by codes in place of clusters; two blocks by codes only. The label that is best
    over B blocks need not be near the top of any: by codes, a block returns `labels`, more than one search does."""
    out = {**given, "Decomp-MIPS-4": {**given["Decomp-MIPS"], "blocks": 4}}
    codes = {"probes": None, "candidates": 1}
    out["MIPS-codes"] = {**given["MIPS"], **codes, "queries": 64}
    for blocks in (2, 4):
        out[f"Decomp-MIPS-{blocks}-codes"] = {**given["Decomp-MIPS"], **codes, "blocks": blocks, "queries": labels}
    return out


def bench_multiclass(args: argparse.Namespace) -> None:
    for k in args.k:
        data = faces(k, 128, 20, some=args.samples)
        # as many labels a search as the square root of K, which is the least that fits its clusters
        given = methods(1.0, 8, {"softmax": 4.0, "margin": 4.0}, batch_size=64, queries=int(k**0.5) + 1)
        given = chosen(with_codes(given, args.labels), args)
        train(f"faces, K = {k}", data, "multiclass", given, args.seconds, args.epochs)


def bench_pinyin(args: argparse.Namespace) -> None:
    given = chosen(with_codes(methods(1.0, 8, {"softmax": 1.0, "margin": 1.0}), args.labels), args)
    train("zh_pinyin", pinyin(args.data), "multiclass", given, args.seconds, 3)


def bench_multilabel(args: argparse.Namespace) -> None:
    for name in args.sets:
        given = chosen(methods(5.0, 4, {"softmax": 0.1, "margin": 0.3}, hidden=100), args)
        train(f"debian {name}", debian(args.data, name), "multilabel", given, args.seconds, 10)


def chosen(given: dict[str, dict[str, Any]], args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    return {name: options for name, options in given.items() if not args.methods or name in args.methods}


# ---- words


def word_methods(k: int) -> dict[str, dict[str, Any]]:
    """Q = K/20; the rest of the words by their moments, as SkipGram does it."""
    base = {"queries": k // 20, "keep": k // 20, "rest": "moments"}
    return {
        "GD-Decomp-MIPS": {**base, "method": "decomposed", "blocks": 4, "probes": 4},
        "GD-MIPS": {**base, "method": "search", "probes": 4},
        "GD-MIPS-codes": {**base, "method": "search", "candidates": k // 20},
        "GD": {"method": "exact"},
    }


def bench_words(args: argparse.Namespace) -> None:
    """Every method from the same start, one pass of negative sampling."""
    text = descriptions(args.data, args.lines)
    solver = SkipGramDescent(read_text(text, 5, 1e-4, 0), 100, 8, 5, 0.025, 1.0, 0, {"method": "exact"})
    k = len(solver.text.vocabulary)
    print(f"\nwords: {len(text)} descriptions, {k} words, Q = K/20; CPU seconds", flush=True)
    spent, _ = cpu(lambda: solver.advance(np.inf))
    begin = float(solver.measure().primal or 0.0)
    print(f"  negative sampling, 1 pass: objective {begin:.4f} after {spent:.1f} s", flush=True)
    saved = solver.export()
    for name, options in word_methods(k).items():
        if args.methods and name not in args.methods:
            continue
        solver.restore(saved)
        solver._loss_settings = options
        points, total = [(0.0, 0.0, 0.0, begin)], 0.0
        while len(points) <= args.passes and total < args.seconds:
            total += cpu(lambda: solver.advance(np.inf))[0]
            points.append((total, float(len(points)), 0.0, float(solver.measure().primal or 0.0)))
            print(f"  {name:15} pass {len(points) - 1}: objective {points[-1][3]:.4f} after {total:.1f} s", flush=True)
        CURVES.setdefault("words", []).append((name, points))
    if not args.methods or "gensim" in args.methods:
        gensim(text, args.passes)


def gensim(text: list[str], epochs: int) -> None:
    """gensim optimises another objective; ours is measured on its input and output rows."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        print("  gensim is not installed")
        return
    measure = SkipGramDescent(read_text(text, 5, 1e-4, 0), 100, 8, 5, 0.025, 1.0, 0, {"method": "exact"})
    for many in (1, epochs):
        spent, other = cpu(
            lambda many=many: Word2Vec(
                [t.split() for t in text], vector_size=100, window=8, sg=1, sample=1e-4, epochs=many, workers=1
            )
        )
        near = [w for w, _ in other.wv.most_similar("music", topn=5)] if "music" in other.wv else []
        place = [other.wv.key_to_index[w] for w in measure.text.vocabulary]  # both leave out words of fewer than 5
        measure.input[:], measure.output[:] = other.wv.vectors[place], other.syn1neg[place]
        value = float(measure.measure().primal or 0.0)
        print(f"  gensim, {many} epochs: {spent:.1f} s, objective {value:.4f}; music: {near}", flush=True)
        CURVES.setdefault("words", []).append((f"gensim, {many} epochs", [(spent, float(many), 0.0, value)]))
