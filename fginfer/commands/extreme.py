"""What `--model extreme` adds to train, predict and evaluate."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from fginfer.commands.common import json_text, option, print_json
from fginfer.commands.saving import save_or_rescue
from fginfer.errors import SettingsError
from fginfer.formats.streams import write_atomically
from fginfer.printable import printable
from fginfer.startup import DONE, FAILED, STOPPED


def add_arguments(add: Any) -> None:
    """The options of train that only extreme classification has."""
    add("--lam", type=float, metavar="L", help="extreme: weight of the l1 term, as in --lam 0.02")
    add("--loss", choices=("hinge", "squared_hinge"), help="extreme: of ppd-sparse (default squared_hinge)")
    add("--keep-lengths", action="store_true", help="extreme: rows are not scaled to unit length")
    add("--memory", type=float, metavar="MB", help="extreme: keep no more of the data in memory; the rest is mapped")
    add("--scheduler", metavar="A", help="extreme: processes, or a Dask scheduler, as in --scheduler tcp://host:8786")


def train(args: argparse.Namespace) -> int:
    from fginfer.extreme import ExtremeClassifier, trained

    given = {
        "solver": args.solver, "C": args.C, "lam": args.lam, "loss": args.loss, "tol": args.tol,
        "max_iter": args.max_iter, "scheduler": args.scheduler,
        "solver_options": dict(option(text) for text in args.option) or None,
    }  # fmt: skip
    if args.memory is not None and not args.memory > 0:
        raise SettingsError(f"--memory must be positive, not {args.memory}")
    model = ExtremeClassifier(
        **{name: value for name, value in given.items() if value is not None},
        unit_rows=not args.keep_lengths, time_limit=args.time_limit, random_state=args.seed, n_jobs=args.threads,
        checkpoint=args.checkpoint, checkpoint_interval=args.checkpoint_interval, verbose=0 if args.quiet else 2,
    )  # fmt: skip
    memory = None if args.memory is None else args.memory * 2**20
    trained.train(args.data, args.zero_based, memory, model)
    saved = save_or_rescue(lambda path: trained.save(model, path, args.zero_based), args.output)
    last = model.trace_[-1]
    facts = {
        "model": args.output, "solver": model.solver, "status": model.status_, "passes": last.passes,
        "primal": model.primal_, "dual": model.dual_, "gap": model.gap_, "seconds": last.seconds,
        "labels": len(model.classes_), "trained": model.n_trained_, "features": model.n_features_in_,
        "weights": model.model_.weights.nnz, "k_A": last.k_A, "k_W": last.k_W,
    }  # fmt: skip
    if args.json:
        print_json({**facts, "trace": [p._asdict() for p in model.trace_]} if args.trace else facts)
    else:
        gap = "" if model.gap_ is None else f", gap {model.gap_:.1e}"
        status = str(model.status_).replace("_", " ")
        labels = f"{facts['trained']} of {facts['labels']} labels"
        print(f"{printable(args.output)}: {status}, {labels}, {facts['weights']} weights{gap}, {last.seconds:.2f} s")
    if not saved:
        return FAILED
    return STOPPED if model.status_ == "interrupted" else DONE


def predict(args: argparse.Namespace) -> int:
    """One line a row: label:score, best first; streamed."""
    from fginfer.extreme import trained

    k = 5 if args.top_k is None else args.top_k
    if k < 1:
        raise SettingsError(f"--top-k must be 1 or more, not {k}")
    model, zero_based = trained.load(args.model)
    with ExitStack() as stack:
        out: TextIO = sys.stdout
        if args.output is not None:
            file = stack.enter_context(write_atomically(Path(args.output)))  # a bad row leaves an older file as it was
            out = stack.enter_context(TextIOWrapper(file, encoding="utf-8", newline="\n"))
        rows: list[Any] = []
        for _, numbers, scores in trained.topk_of(model, args.data, zero_based, k, args.threads):
            names = [[str(model.classes_[k]) for k in row] for row in numbers.tolist()]
            if args.json:
                rows += [
                    [{"label": name, "score": score} for name, score in zip(*pair, strict=True)]
                    for pair in zip(names, scores.tolist(), strict=True)
                ]
            else:
                for row, values in zip(names, scores.tolist(), strict=True):
                    out.write(" ".join(f"{n}:{s:.6g}" for n, s in zip(row, values, strict=True)) + "\n")
        if args.json:
            out.write(json_text({"answers": rows}) + "\n")
    return 0


def evaluate(args: argparse.Namespace) -> int:
    from fginfer.extreme import trained

    model, zero_based = trained.load(args.model)
    measures = trained.evaluate(model, args.data, zero_based)
    if args.json:
        print_json(measures)
    else:
        for name, value in measures.items():
            print(f"{name:<12} {value}" if isinstance(value, int) else f"{name:<12} {100 * value:.2f} %")
    return 0
