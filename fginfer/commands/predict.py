"""fginfer predict: applies a trained model to a file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="label a file with a trained model",
        description="Writes the input columns and the answer (CoNLL), or one line of labels an example (svmlight).",
        epilog="examples:\n  fginfer predict chunker.npz test.txt.gz --output answers.txt\n"
        "  fginfer predict tags.npz test.svm --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a model file written by `fginfer train`")
    parser.add_argument("data", metavar="FILE", help="data as the training file, with or without labels, also .gz")
    parser.add_argument(
        "--output", "-o", metavar="F", help="where to write, as in -o out.txt (default: standard output)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object: a list of labels an example")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from fginfer.learn.files.trained import FileModel

    model = FileModel.load(args.model)
    given, answers = model.predict(args.data)
    if args.json:
        text = json.dumps({"answers": [list(map(str, labels)) for labels in answers]}) + "\n"
    elif model.format == "svmlight":
        text = "".join(",".join(labels) + "\n" for labels in answers)
    else:
        blocks = (
            "".join(" ".join([*token, str(label)]) + "\n" for token, label in zip(sentence, labels, strict=True))
            for sentence, labels in zip(given, answers, strict=True)
        )
        text = "\n".join(blocks)
    if args.output is None:
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text, encoding="utf-8")
    return 0
