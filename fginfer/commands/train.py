"""fginfer train: learns a tagger from a CoNLL file or a multilabel classifier from an svmlight file."""

from __future__ import annotations

import argparse
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fginfer.commands import extreme
from fginfer.commands.common import option, print_json
from fginfer.commands.saving import save_or_rescue
from fginfer.errors import FormatError, SettingsError
from fginfer.formats.streams import check_writable
from fginfer.log import logger
from fginfer.printable import printable
from fginfer.startup import DONE, FAILED, STOPPED
from fginfer.terminal import Terminal

if TYPE_CHECKING:
    from fginfer.learn.files.trained import FileModel
    from fginfer.learn.files.treebank import ParseModel

EXAMPLE = """examples:
  fginfer train train.txt.gz --output chunker.npz --C 0.1
  fginfer train train.txt --output tagger.npz --templates templates.txt --affixes 3 --min-count 2
  fginfer train bibtex.svm --output tags.npz --solver gdmm --C 3 --max-iter 30 --option greedy=16
  fginfer train train.txt.gz --output crf.npz --model crf --l1 1
  fginfer train train.conllu --output parser.npz --task parse --feature-columns FORM,UPOS
  fginfer train big.svm --output big.fgx --model extreme --threads 4 --memory 4000
  fginfer train big.txt --output big.npz --checkpoint big.ckpt --time-limit 3600

exit codes: 0 trained (the log says how far), 2 stopped by Ctrl-C (the model has what was learned), 3 bad input
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "train",
        help="learn a model from labelled data",
        description="Learns from a CoNLL file (last column: the label), a CoNLL-U file (words to UPOS, or with --task "
        "parse words and tags to HEAD) or an svmlight file (one label a line: multiclass; several: label sets).",
        epilog=EXAMPLE,
    )
    add: Any = parser.add_argument
    _add_data(add)
    _add_model(add)
    _add_features(add)
    add("--checkpoint", metavar="F", help="continue from and save to this file, as in --checkpoint run.ckpt")
    add("--checkpoint-interval", type=float, default=60.0, metavar="S", help="seconds between two saves (default 60)")
    add("--option", metavar="NAME=VALUE", action="append", default=[], help="of the solver, as in --option rho=0.1")
    extreme.add_arguments(add)
    add("--json", action="store_true", help="print one JSON object instead of a line")
    add("--trace", action="store_true", help="with --json: every measured point")
    add("--quiet", action="store_true", help="no log")
    parser.set_defaults(run=run)


def _add_data(add: Any) -> None:
    """Files, and what is in which column."""
    add("data", metavar="FILE", help="training data, also .gz; .svm, .svmlight, .libsvm: label,label index:value ...")
    add("--output", "-o", metavar="F", required=True, help="the model file to write, as in --output chunker.npz")
    add(
        "--format",
        choices=("conll", "conllu", "svmlight"),
        help="of FILE, if its name does not tell, as in --format svmlight",
    )
    add("--label-column", metavar="N", help="the label: a number from 0, -1 the last, or a name as in CoNLL-U: XPOS")
    add("--feature-columns", metavar="N,N", help="columns to learn from, as in FORM,LEMMA (default: all but the label)")
    add("--task", choices=("tag", "multiclass", "multilabel", "parse"), help="what FILE is about, if it does not tell")
    add("--longest", type=int, metavar="N", help="parse: leave out sentences with more tokens (default 40)")


def _add_model(add: Any) -> None:
    """What is learned, and how long."""
    add(
        "--model",
        choices=("svm", "crf", "extreme"),
        default="svm",
        help="large margin, a conditional random field (CoNLL files), or very many labels (svmlight, XMLRepo)",
    )
    add("--l1", type=float, metavar="X", help="crf: weight of the l1 penalty, as in --l1 2 (default 1)")
    add("--l2", type=float, metavar="X", help="crf: weight of the squared penalty, as in --l2 0.1 (default 0)")
    solver = add(
        "--solver", metavar="S", help="as in --solver cutting-plane (default bcfw; label sets with interactions: gdmm)"
    )
    solver.completer = _complete_solvers
    add("--C", type=float, metavar="C", help="svm: weight of the loss, as in --C 0.03 (default 0.1)")
    add("--tol", type=float, metavar="T", help="gap to stop at (default 1e-3; crf: violation of optimality, 1e-4)")
    add("--max-iter", type=int, metavar="N", help="passes, as in --max-iter 100 (default 30; crf: steps, 1000)")
    add("--time-limit", type=float, metavar="S", help="seconds of training, as in --time-limit 60 (default: none)")
    add("--seed", type=int, default=0, metavar="N", help="of the order of examples, as in --seed 7 (default 0)")
    add("--threads", type=int, default=1, metavar="N", help="of the oracles, as in --threads 2; same model (default 1)")
    add("--batch-size", type=int, metavar="N", help="svm: examples a step, which threads share (default 1)")


def _add_features(add: Any) -> None:
    """What is made of the columns."""
    add("--templates", metavar="F", help="feature templates, one a line: 0[-1]|1[0] joins the word before and this tag")
    add(
        "--min-count",
        type=int,
        default=1,
        metavar="N",
        help="leave out rarer features, as in --min-count 2 (parse: words, at least 2)",
    )
    add(
        "--affixes",
        type=int,
        default=0,
        metavar="N",
        help="also prefixes and suffixes up to N letters, as in --affixes 3",
    )
    add("--zero-based", action="store_true", help="indices of an svmlight file begin at 0, not at 1")
    add("--no-pairwise", action="store_true", help="no weights on pairs of labels")


def _complete_solvers(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """What the shell may put for --solver, by the --model that was given before it."""
    from fginfer.extreme import settings
    from fginfer.learn.crf import solver
    from fginfer.learn.solvers import registry

    return list({"extreme": settings, "crf": solver}.get(parsed_args.model, registry).SOLVERS)


def run(args: argparse.Namespace) -> int:
    folder = Path(args.output).parent
    if not folder.is_dir() or Path(args.output).is_dir():
        raise SettingsError(f"{args.output}: a model cannot be written there")
    check_writable(args.output)  # better now than after an hour
    check_task(args)
    settings = {} if args.model == "extreme" else settings_of(args)
    with Terminal():
        level = logger.level
        logger.setLevel(logging.WARNING if args.quiet else logging.INFO)
        old = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a batch system's stop is a Ctrl-C
        try:
            if args.model == "extreme":
                return extreme.train(args)
            model = _train(args, settings)
        finally:
            signal.signal(signal.SIGTERM, old)
            logger.setLevel(level)
    saved = save_or_rescue(model.save, args.output)
    _show(args, model.svm)
    if not saved:
        return FAILED
    return STOPPED if model.svm.status_ == "interrupted" else DONE


def _train(args: argparse.Namespace, settings: dict[str, Any]) -> FileModel | ParseModel:
    # Imported here: scikit-learn takes a second, for which other commands need not wait.
    from fginfer.learn.files.trained import FileModel
    from fginfer.learn.files.treebank import ParseModel

    columns = None if args.feature_columns is None else args.feature_columns.split(",")
    settings |= {
        "time_limit": args.time_limit, "random_state": args.seed, "n_jobs": args.threads,
        "verbose": 0 if args.quiet else 2, "checkpoint": args.checkpoint,
        "checkpoint_interval": args.checkpoint_interval,
        "solver_options": dict(option(text) for text in args.option) or None,
    }  # fmt: skip
    if args.task == "parse":
        longest = 40 if args.longest is None else args.longest
        return ParseModel.train(args.data, columns, max(2, args.min_count), longest, **settings)
    return FileModel.train(
        args.data, args.format, templates_of(args.templates), args.min_count, args.affixes,
        args.zero_based, args.model, args.label_column, columns, args.task,
        pairwise=not args.no_pairwise, **settings,
    )  # fmt: skip


def _show(args: argparse.Namespace, svm: Any) -> None:
    """How training ended, as one line or as JSON."""
    from fginfer.learn.row_weights import values_of

    last = svm.trace_[-1]
    if args.json:
        data = {
            "model": args.output, "solver": getattr(svm, "solver_", svm.solver), "status": svm.status_,
            "passes": last.passes,
            "primal": svm.primal_, "dual": svm.dual_, "gap": svm.gap_, "infeasibility": last.infeasibility,
            "oracle_calls": last.oracle_calls, "entries_touched": last.entries_touched, "seconds": last.seconds,
            "labels": len(svm.classes_), "features": svm.n_features_in_, "weights": len(svm.weights_),
            "nonzeros": int(np.count_nonzero(values_of(svm.weights_))),
        }  # fmt: skip
        print_json({**data, "trace": [p._asdict() for p in svm.trace_]} if args.trace else data)
        return
    gap = "" if svm.gap_ is None else f", gap {svm.gap_:.1e}"
    status = svm.status_.replace("_", " ")
    size = f", {svm.n_nonzero_} of {len(svm.weights_)} weights" if args.model == "crf" else ""
    print(f"{printable(args.output)}: {status} after {last.passes} passes{gap}{size}, {last.seconds:.2f} s")


def check_task(args: argparse.Namespace) -> None:
    """What goes with parsing, and with nothing else."""
    if args.task != "parse":
        if args.longest is not None:
            raise SettingsError("--longest belongs to --task parse")
        return
    unused = {
        "--model": args.model != "svm", "--templates": args.templates, "--affixes": args.affixes,
        "--zero-based": args.zero_based, "--no-pairwise": args.no_pairwise,
        "--label-column": (args.label_column or "HEAD").upper() not in ("HEAD", "6", "-4"),
        "--format": args.format not in (None, "conllu"),
    }  # fmt: skip
    wrong = [name for name, given in unused.items() if given]
    if wrong:
        raise SettingsError(f"{wrong[0]} does not go with --task parse, which learns HEAD of a CoNLL-U file")


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """What was said, and the defaults of the model for the rest; what it has no use for is an error."""
    crf = args.model == "crf"
    for name in ("C", "batch_size") if crf else ("l1", "l2"):
        if getattr(args, name) is not None:
            raise SettingsError(f"--{name.replace('_', '-')} is no setting of --model {args.model}")
    if crf:
        defaults = {"l1": 1.0, "l2": 0.0, "tol": 1e-4, "max_iter": 1000}
    else:
        defaults = {"C": 0.1, "tol": 1e-3, "max_iter": 30, "batch_size": 1}
    settings = {name: value if getattr(args, name) is None else getattr(args, name) for name, value in defaults.items()}
    return {**settings, "solver": args.solver} if args.solver else settings


def templates_of(path: str | None) -> list[str] | None:
    """The lines of a template file, without comments."""
    if path is None:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text ({error.reason})", path) from None
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    found = [line for line in lines if line]
    if not found:
        raise FormatError("there are no templates", path)
    return found
