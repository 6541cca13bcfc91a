"""fginfer train: learns a tagger from a CoNLL file or a multilabel classifier from an svmlight file."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from fginfer.commands.common import option, print_json
from fginfer.log import logger

EXAMPLE = """examples:
  fginfer train train.txt.gz --output chunker.npz --C 0.1
  fginfer train bibtex.svm --output tags.npz --solver gdmm --C 3 --max-iter 30"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "train",
        help="learn a model from labelled data",
        description="Learns from a CoNLL file (last column: the label) or an svmlight file with several labels a line.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="FILE", help="training data, also .gz")
    parser.add_argument("--output", "-o", metavar="F", required=True, help="the model file to write")
    parser.add_argument("--format", choices=("conll", "svmlight"), help="of FILE, if its name does not tell")
    parser.add_argument("--solver", default="bcfw", help="bcfw (default), gdmm, cutting-plane, dcd, perceptron ...")
    parser.add_argument("--C", type=float, default=0.1, help="weight of the loss (default 0.1)")
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap to stop at (default 1e-3)")
    parser.add_argument("--max-iter", type=int, default=30, metavar="N", help="passes (default 30)")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--templates", metavar="F", help="feature templates, one a line, as in 0[-1]|1[0]")
    parser.add_argument("--min-count", type=int, default=1, metavar="N", help="leave out rarer features")
    parser.add_argument("--affixes", type=int, default=0, metavar="N", help="also prefixes and suffixes up to N long")
    parser.add_argument("--no-pairwise", action="store_true", help="no weights on pairs of labels")
    parser.add_argument("--checkpoint", metavar="F", help="continue from and save to this file")
    parser.add_argument("--option", metavar="NAME=VALUE", action="append", default=[], help="an option of the solver")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no log")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from fginfer.learn.filemodel import FileModel  # scikit-learn takes a second to import; other commands need not wait

    handler = logging.StreamHandler()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.WARNING if args.quiet else logging.INFO)
    try:
        model = FileModel.train(
            args.data, args.format, templates_of(args.templates), args.min_count, args.affixes, solver=args.solver,
            C=args.C, tol=args.tol, max_iter=args.max_iter, time_limit=args.time_limit, random_state=args.seed,
            n_jobs=args.threads, pairwise=not args.no_pairwise, verbose=0 if args.quiet else 2,
            checkpoint=args.checkpoint, solver_options=dict(option(text) for text in args.option) or None,
        )  # fmt: skip
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    model.save(args.output)
    svm = model.svm
    seconds = svm.trace_[-1].seconds if svm.trace_ else 0.0
    if args.json:
        print_json(
            {
                "model": args.output, "status": svm.status_, "passes": svm.n_iter_, "primal": svm.primal_,
                "dual": svm.dual_, "gap": svm.gap_, "seconds": seconds, "labels": len(svm.classes_),
                "weights": len(svm.weights_),
            }
        )  # fmt: skip
    else:
        gap = "" if svm.gap_ is None else f", gap {svm.gap_:.1e}"
        print(f"{args.output}: {svm.status_} after {svm.n_iter_} passes{gap}, {seconds:.2f} s")
    return 0


def templates_of(path: str | None) -> list[str] | None:
    if path is None:
        return None
    lines = (line.split("#")[0].strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
