"""Experiments of the papers behind the learning solvers, on the sets of a folder; a part takes a few minutes at most.

usage: python -m bench learning_papers DATASETS_DIR [--part NAME,NAME ...] [--out DIR] [--runs 10]

  lambda      Lacoste-Julien et al. 2013, Figure 1: OCR small, three lambdas, ten runs with bands
  steps       ... Figure 2: line searches and predefined steps
  averages    ... Figures 3, 4: last iterate, weighted, uniform and suffix averages; OCR small and CoNLL-2000
  ocr-large   ... on the large OCR set
  alignment   ... Figure 5: matchings (word alignment), synthetic sentences
  oracles     ... Section 5: approximate oracles (beams) and what they cost
  dcd-tagging Chang and Yih 2013, Figures 1 to 3, Table 1: spans of proper nouns (NER-like), three variants and rivals
  dcd-parsing ... parsing
  figure2     Yen et al. 2016, Figure 2: gdmm and soft-bcfw with tuned rho; sublinear and brute-force oracles

Prints a line for every solver as it ends; with --out draws curves with bands (mean, lowest and highest of the runs).
Seconds are CPU seconds of this process, measuring not counted. lambda = 1/(nC).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.learn import learning_data as sets
from bench.papers.learning_curves import Plan, bands, best_dual, compare, draw
from bench.papers.learning_papers_data import AlignmentOracle, Beam, alignment, proper_nouns, tagging
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import chunk_f1


def wrong_labels(test: Any, most: int = 600) -> Any:
    """weights -> share of wrong labels in the first test examples: to look at all would take longer than training."""
    test = sets.subset(test, np.arange(min(most, test.n_examples)))
    judge = Learner(test)
    return lambda w: float(np.mean(judge.decode(w).labels != test.truth))


def panels_of(heading: str, found: Any, near: float = 0.0) -> list[tuple[str, str, str, Any]]:
    """near: a lower bound that is nearer to the optimum than those of the runs."""
    floor = max(near, best_dual(found))
    return [
        (heading, "passes", "primal suboptimality", bands(found, "passes", "primal", floor)),
        (heading, "seconds", "primal suboptimality", bands(found, "seconds", "primal", floor)),
        (heading, "passes", "test error %", bands(found, "passes", "error")),
    ]


def reference(data: Any, C: float, passes: int = 50) -> float:
    """A lower bound near the optimum, by bcfw with kept answers."""
    return best_dual(compare([Plan("(reference)", "bcfw")], data, C, passes))


def lambdas(n: int) -> tuple[tuple[str, float], ...]:
    return (("0.01", 0.01), ("0.001", 0.001), ("1 over n", 1 / n))


def part_lambda(folder: Path, out: Path | None, runs: int) -> None:
    task = sets.ocr(folder)
    n, panels = task.train.n_examples, []
    plain = {"cached_passes": 0}
    plans = [
        Plan("bcfw", "bcfw", plain, "last"),
        Plan("bcfw, weighted mean", "bcfw", plain, "mean"),
        Plan("bcfw with kept answers", "bcfw"),
        Plan("ssg", "ssg", {}, "last"),
        Plan("ssg, weighted mean", "ssg", {}, "mean"),
        Plan("fw", "fw"),
        Plan("cutting-plane", "cutting-plane"),
        Plan("gdmm", "gdmm"),
    ]
    for name, value in lambdas(n):
        print(f"\nOCR small, lambda = {name}, {runs} runs")
        panels += panels_of(
            f"lambda = {name}", compare(plans, task.train, 1 / (n * value), 50, wrong_labels(task.test), runs)
        )
    draw("papers, OCR small by lambda", panels, out)


def part_steps(folder: Path, out: Path | None, runs: int) -> None:
    task = sets.ocr(folder)
    n, panels = task.train.n_examples, []
    plans = [
        Plan("bcfw, line search", "bcfw", {"cached_passes": 0}, "last"),
        Plan("bcfw, predefined", "bcfw", {"step": "predefined"}, "last"),
        Plan("bcfw, predefined, mean", "bcfw", {"step": "predefined"}, "mean"),
        Plan("fw, line search", "fw"),
        Plan("fw, predefined", "fw", {"step": "predefined"}),
        Plan("ssg", "ssg", {}, "last"),
    ]
    for name, value in lambdas(n):
        print(f"\nOCR small, steps, lambda = {name}, {runs} runs")
        found = compare(plans, task.train, 1 / (n * value), 50, None, runs)
        panels.append(
            (
                f"lambda = {name}",
                "passes",
                "primal suboptimality",
                bands(found, "passes", "primal", reference(task.train, 1 / (n * value))),
            )
        )
    draw("papers, steps", panels, out)


def part_averages(folder: Path, out: Path | None, runs: int) -> None:
    plain = {"cached_passes": 0}
    plans = [Plan("bcfw", "bcfw", plain, "last"), Plan("ssg", "ssg", {}, "last")]
    for mean in ("usual", "uniform", "suffix"):
        label = "weighted" if mean == "usual" else mean
        plans += [
            Plan(f"bcfw, {label}", "bcfw", {**plain, "mean": mean}, "mean"),
            Plan(f"ssg, {label}", "ssg", {"mean": mean}, "mean"),
        ]
    task = sets.ocr(folder)
    n, panels = task.train.n_examples, []
    for name, value in lambdas(n):
        print(f"\nOCR small, averages, lambda = {name}, {runs} runs")
        found = compare(plans, task.train, 1 / (n * value), 50, wrong_labels(task.test), runs)
        panels += panels_of(f"OCR small, lambda = {name}", found, reference(task.train, 1 / (n * value)))
    chunks = sets.conll(folder)
    n, (_, truth) = chunks.train.n_examples, chunks.extra
    judge = Learner(chunks.test)

    def error(w: Any) -> float:
        return 1 - chunk_f1(truth, [chunks.classes[a] for a in judge.decode(w).split()])

    few = max(1, min(runs, 3))  # ten runs take a quarter of an hour
    print(f"\nCoNLL-2000 (error: 100 - F1), averages, lambda = 1/n, {few} runs")
    found = compare(plans, chunks.train, 1.0, 5, error, few)
    panels += panels_of("CoNLL-2000, lambda = 1 over n", found, reference(chunks.train, 1.0, 15))
    draw("papers, averages", panels, out)


def part_ocr_large(folder: Path, out: Path | None, runs: int) -> None:
    small = sets.ocr(folder)
    train, test = small.test, small.train  # the other way round
    n, panels = train.n_examples, []
    plans = [
        Plan("bcfw", "bcfw", {"cached_passes": 0}, "last"),
        Plan("bcfw with kept answers", "bcfw"),
        Plan("bcfw, weighted mean", "bcfw", {"cached_passes": 0}, "mean"),
        Plan("ssg, weighted mean", "ssg", {}, "mean"),
        Plan("gdmm", "gdmm"),
        Plan("cutting-plane", "cutting-plane"),
    ]
    for name, value in lambdas(n):
        print(f"\nOCR large ({n} words), lambda = {name}, {min(runs, 3)} runs")
        panels += panels_of(
            f"lambda = {name}", compare(plans, train, 1 / (n * value), 20, wrong_labels(test), min(runs, 3))
        )
    draw("papers, OCR large", panels, out)


def part_alignment(folder: Path, out: Path | None, runs: int) -> None:
    train, test = alignment(300, 0), alignment(200, 1)
    n, panels = train.n_examples, []
    judge, oracle = Learner(test), AlignmentOracle()

    def error(w: Any) -> float:
        answers = [oracle.answer(judge, np.asarray(w), i, 0.0) for i in range(test.n_examples)]
        return float(np.mean(np.concatenate(answers) != test.truth))

    plans = [
        Plan("bcfw, last", "bcfw", {"cached_passes": 0}, "last", oracle=oracle),
        Plan("bcfw, weighted mean", "bcfw", {"cached_passes": 0}, "mean", oracle=oracle),
        Plan("bcfw with kept answers", "bcfw", oracle=oracle),
        Plan("ssg, weighted mean", "ssg", {}, "mean", oracle=oracle),
        Plan("cutting-plane", "cutting-plane", oracle=oracle, passes=20),
    ]
    for name, value in lambdas(n):
        print(f"\nword alignment, {n} synthetic sentence pairs, lambda = {name}, {min(runs, 3)} runs")
        panels += panels_of(f"lambda = {name}", compare(plans, train, 1 / (n * value), 15, error, min(runs, 3)))
    draw("papers, word alignment", panels, out)


def part_oracles(folder: Path, out: Path | None, runs: int) -> None:
    task = sets.ocr(folder)
    C, panels = 0.1, []
    print(
        "\nOCR small, C = 0.1: bcfw with beams in place of Viterbi. Accuracy: hinge losses of the answers over the best"
    )
    plans = [Plan("Viterbi", "bcfw", {"cached_passes": 0}, "last")]
    beams = {width: Beam(width) for width in (1, 2, 3, 5, 10)}
    plans += [Plan(f"beam of {width}", "bcfw", {"cached_passes": 0}, "last", oracle=b) for width, b in beams.items()]
    found = {}
    for plan in plans:
        found.update(compare([plan], task.train, C, 20, wrong_labels(task.test)))
        if plan.oracle is not None:
            print(f"    accuracy of the answers in training: {plan.oracle.accuracy():.3f}")
    floor = best_dual(compare([Plan("optimum, nearly", "bcfw", passes=100)], task.train, C, 100))
    panels = [
        (
            "dual",
            "passes",
            "dual suboptimality",
            bands(
                {k: [[{**r, "gap": floor - r["dual"]} for r in rows] for rows in v] for k, v in found.items()},
                "passes",
                "gap",
            ),
        ),
        *panels_of("approximate oracles", found)[::2],
    ]
    draw("papers, approximate oracles", panels, out)


def rivals() -> list[Plan]:
    return [
        Plan("dcd-light", "dcd", {"variant": "light"}),
        Plan("dcd-ssvm", "dcd"),
        Plan("cpd", "dcd", {"variant": "cpd"}),
        Plan("bcfw (fw-struct)", "bcfw"),
        Plan("cutting-plane (svm-struct)", "cutting-plane", passes=60),
        Plan("perceptron", "perceptron"),
        Plan("mira", "mira"),
        Plan("ssg", "ssg"),
    ]


def dcd_panels(heading: str, found: Any) -> list[tuple[str, str, str, Any]]:
    """The gap of the variants, which share an objective, over time; errors of all."""
    variants = {k: v for k, v in found.items() if k.startswith(("dcd", "cpd"))}
    floor = best_dual(variants)
    gaps = {
        k: [[{**r, "gap": max(1e-8, (r["primal"] - r["dual"]) / r["primal"])} for r in rows] for rows in v]
        for k, v in variants.items()
    }
    return [
        (heading, "seconds", "duality gap", bands(gaps, "seconds", "gap")),
        (heading, "seconds", "primal suboptimality (squared hinge)", bands(variants, "seconds", "primal", floor)),
        (heading, "seconds", "test error %", bands(found, "seconds", "error")),
    ]


def part_dcd_tagging(folder: Path, out: Path | None, runs: int) -> None:
    train, test, classes, truth = proper_nouns(folder)
    judge = Learner(test)

    def error(w: Any) -> float:
        return 1 - chunk_f1(truth, [classes[a] for a in judge.decode(w).split()])

    print(f"\nspans of proper nouns, {train.n_examples} sentences, C = 0.1; error: 100 - F1 of spans")
    found = compare(rivals(), train, 0.1, 15, error, min(runs, 2))
    draw("papers, dcd on spans", dcd_panels("spans of proper nouns", found), out)


def part_dcd_parsing(folder: Path, out: Path | None, runs: int) -> None:
    from fginfer.learn.data.encode import encode
    from fginfer.learn.data.parsing import ArcFeatures, is_projective

    train = [s for s in sets.treebank(folder, "train") if len(s[0]) <= 20 and is_projective(s[2])][:3000]
    test = [s for s in sets.treebank(folder, "test") if len(s[0]) <= 40][:600]
    features = ArcFeatures().fit([s[:2] for s in train])
    data, _ = encode("parse", features.transform([s[:2] for s in train]), [s[2] for s in train])
    judge = Learner(encode("parse", features.transform([s[:2] for s in test]))[0])
    truth = np.concatenate([s[2] for s in test])
    print(f"\nparsing, {len(train)} projective sentences of up to 20 tokens, C = 0.1; error: wrong heads")
    found = compare(rivals(), data, 0.1, 20, lambda w: float(np.mean(judge.decode(w).labels != truth)))
    draw("papers, dcd on parsing", dcd_panels("parsing", found), out)


def part_figure2(folder: Path, out: Path | None, runs: int) -> None:
    task = tagging(folder, 600)
    n, C = task.train.n_examples, 0.1
    error = wrong_labels(task.test)
    print(f"\ntags of {n} sentences, {task.train.n_labels} labels, C = {C}: gdmm (brute force), soft-bcfw")
    tried = [
        Plan(f"soft-bcfw, rho {rho:g}", "soft-bcfw", {"rho": rho, "brute_force": True})
        for rho in (0.1, 1.0, 10.0, 100.0, 1000.0)
    ]
    plans = [Plan("gdmm", "gdmm", {"brute_force": True}), Plan("bcfw", "bcfw"), *tried]
    found = compare(plans, task.train, C, 20, error)
    ends = {p.label: min(r["primal"] for r in found[p.label][0]) for p in tried}
    best = sorted(ends, key=lambda label: ends[label])[:2]
    print(
        f"  the two best rho: {', '.join(best)}; lowest primal of gdmm {min(r['primal'] for r in found['gdmm'][0]):.6g}"
    )
    shown = {label: rows for label, rows in found.items() if label in ("gdmm", *best)}
    floor = best_dual({k: v for k, v in found.items() if k in ("gdmm", "bcfw")})
    panels = [
        ("tags, by iterations", "iterations", "primal suboptimality", bands(shown, "passes", "primal", floor)),
        ("tags, by iterations", "iterations", "test error %", bands(shown, "passes", "error")),
    ]
    pinyin = sets.pinyin(folder)
    some = sets.subset(pinyin.train, np.arange(15))
    print(f"\npinyin to characters, {some.n_examples} sequences, {some.n_labels} labels: sublinear oracles or not")
    start = time.process_time()
    plans = [
        Plan("gdmm, sublinear", "gdmm", {"primal": "relaxed"}, passes=20),
        Plan("gdmm, brute force", "gdmm", {"primal": "relaxed", "brute_force": True}, passes=4),
    ]
    both = compare(plans, some, 1.0, 30)
    panels.append(("pinyin, 4424 labels", "seconds", "primal objective", bands(both, "seconds", "primal")))
    print(f"  ({time.process_time() - start:.0f} s in all)")
    draw("papers, gdmm figure 2", panels, out)


PARTS = {
    "lambda": part_lambda,
    "steps": part_steps,
    "averages": part_averages,
    "ocr-large": part_ocr_large,
    "alignment": part_alignment,
    "oracles": part_oracles,
    "dcd-tagging": part_dcd_tagging,
    "dcd-parsing": part_dcd_parsing,
    "figure2": part_figure2,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    args = parser.parse_args()
    for name in args.part.split(","):
        print(f"\n==== {name}")
        PARTS[name](args.folder, args.out, args.runs)


if __name__ == "__main__":
    main()
