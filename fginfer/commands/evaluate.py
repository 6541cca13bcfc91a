"""fginfer evaluate: how well a trained model does on a labelled file."""

from __future__ import annotations

import argparse
from typing import Any

from fginfer.commands import extreme
from fginfer.commands.common import check_model_first, print_json


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="compare a trained model with labelled data",
        description="Accuracy and chunk F1 on a CoNLL file; heads that a parser has right; micro-F1 and exact"
        " match on an svmlight file; P@k,"
        " nDCG@k, PSP@k and F1 of models with very many labels.",
        epilog="examples:\n  fginfer evaluate chunker.npz test.txt.gz\n  fginfer evaluate tags.npz test.svm --json",
    )
    parser.add_argument("model", metavar="MODEL", help="a model file written by `fginfer train`")
    parser.add_argument("data", metavar="FILE", help="labelled data as the training file, also .gz")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from fginfer.extreme.trained import is_extreme
    from fginfer.learn.files.load import load_file_model

    check_model_first(args)
    if is_extreme(args.model):
        return extreme.evaluate(args)

    measures = load_file_model(args.model).evaluate(args.data)
    if args.json:
        print_json(measures)
    else:
        for name, value in measures.items():
            plain = isinstance(value, int) or name == "log_likelihood"
            print(f"{name:<14} {value:.10g}" if plain else f"{name:<14} {100 * value:.2f} %")
    return 0
