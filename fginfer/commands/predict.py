"""fginfer predict: applies a trained model to a file."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from fginfer.commands import extreme
from fginfer.commands.common import check_model_first, write_answer
from fginfer.errors import SettingsError
from fginfer.formats.streams import check_writable
from fginfer.startup import DONE, FAILED


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="label a file with a trained model",
        description="Writes the input columns and the answer (CoNLL), or one line of labels per example (svmlight),"
        " or CoNLL-U with the predicted tags or heads in their columns.",
        epilog="examples:\n  fginfer predict chunker.npz test.txt.gz --output answers.txt\n"
        "  fginfer predict tags.npz test.svm --json\n  fginfer predict crf.npz test.txt --probabilities\n"
        "  fginfer predict big.fgx test.svm --top-k 10",
    )
    parser.add_argument("model", metavar="MODEL", help="a model file written by `fginfer train`")
    parser.add_argument("data", metavar="FILE", help="data as the training file, with or without labels, also .gz")
    parser.add_argument(
        "--output", "-o", metavar="F", help="where to write, as in -o out.txt (default: standard output)"
    )
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="crf: with the probability of each answer, and with --json of all labels",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="extreme: the best K labels (default 5)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="extreme: threads, as in --threads 2")
    parser.add_argument("--json", action="store_true", help="print one JSON object: a list of labels for each example")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from fginfer.extreme.trained import is_extreme
    from fginfer.learn.files.load import load_file_model
    from fginfer.learn.files.treebank import ParseModel

    check_model_first(args)
    if args.output is not None:
        check_writable(args.output)  # before the work
    if is_extreme(args.model):
        return extreme.predict(args)
    model = load_file_model(args.model)
    if args.top_k is not None:
        raise SettingsError("--top-k belongs to models of very many labels: train with --model extreme")
    if args.probabilities and isinstance(model, ParseModel):
        raise SettingsError("only conditional random fields have probabilities: train with --model crf")
    given, answers = model.predict_file(args.data)
    if args.probabilities:
        text = with_probabilities(model, given, answers, args.json)
    elif args.json:
        text = json.dumps({"answers": [list(map(str, labels)) for labels in answers]}) + "\n"
    elif model.format == "svmlight":
        text = "".join(",".join(labels) + "\n" for labels in answers)
    else:
        text = model.written(given, answers)
    if args.output is None:
        sys.stdout.write(text)
    elif not write_answer(text, args.output):
        return FAILED
    return DONE


def with_probabilities(model: Any, given: list[Any], answers: list[Any], as_json: bool) -> str:
    """Every token with its answer and the probability of that; as JSON the probabilities of all labels."""
    marginals, space = model.probabilities(given), "\t" if model.format == "conllu" else " "
    place = {str(label): k for k, label in enumerate(model.svm.classes_)}
    if as_json:
        return json.dumps(
            {
                "answers": [list(map(str, labels)) for labels in answers],
                "labels": list(place),
                "probabilities": [[[round(float(p), 6) for p in row] for row in table] for table in marginals],
            }
        ) + "\n"  # fmt: skip
    blocks = (
        "".join(
            space.join([*token, str(label), f"{row[place[str(label)]]:.4f}"]) + "\n"
            for token, label, row in zip(sentence, labels, table, strict=True)
        )
        for sentence, labels, table in zip(given, answers, marginals, strict=True)
    )
    return "\n".join(blocks)
