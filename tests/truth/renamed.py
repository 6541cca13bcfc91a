"""Every command with every file of tests/corpus and models/ under every extension: an answer or one clear sentence.

    python tests/truth/renamed.py [--command solve] [--source small.uai] [--extension .wcsp] [--part 0 --parts 10]

A file whose extension says something else is refused with a sentence that says so, or read as what it is: never a
traceback, a code that is not documented, a hang, or another answer than under its own name. Prints a JSON line for
everything else, then counts. Exit code 1 if there was any. All of it takes about an hour of one core; --part is every
tenth pair, say. tests/cli/test_renamed_files.py runs a slice.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from fginfer.cli import main as fginfer_main
from fginfer.formats import FORMATS

sys.path.insert(0, str(Path(__file__).parent))  # a test imports this as a module of a package
from ledger import note

ROOT = Path(__file__).resolve().parents[2]
CORPUS = sorted((ROOT / "tests" / "corpus").iterdir())
MODELS = sorted(p for p in (ROOT / "models").iterdir() if p.suffix not in (".py", ".json") and p.is_file())
SMALL, WORDS, TWO = (str(ROOT / "tests" / "corpus" / name) for name in ("small.uai", "words.conll", "two.MPE"))
EXTENSIONS = [
    *(e for known in FORMATS.values() for e in known.extensions),
    *("", ".gz", ".xz", ".uai.gz", ".npz.bz2", ".conll", ".conllu", ".svm", ".txt", ".MPE", ".evid", ".zzz"),
]
DOCUMENTED = (0, 2, 3, 20)  # 4 is a failure of ours
# Formats of one layout: only the extension tells potentials from logarithms, or edges from terms.
ALIKE = ({".uai", ".lg"}, {".rud", ".rudy", ".mc", ".sparse", ".bq"})
SECONDS = 60  # after which a command counts as hanging

# {} is the renamed file, {tagger} and {rows} are trained models, {out} is a name for what is written.
QUICK = ("--max-iter", "1", "--time-limit", "0.3", "--quiet")
SOLVE = ("solve", "{}", "--time-limit", "0.2", "--json", "--quiet")
COMMANDS: list[tuple[str, ...]] = [
    SOLVE,
    ("solve", "{}", "--time-limit", "0.2", "--quiet", "--proof", "{out}.proof"),
    ("solve", "{}", "--k-best", "2", "--time-limit", "0.2", "--json", "--quiet"),
    ("solve", SMALL, "--start", "{}", "--quiet"),
    ("solve", SMALL, "--evidence", "{}", "--quiet"),
    ("info", "{}", "--json"),
    ("info", SMALL, "--evidence", "{}"),
    ("marginals", "{}", "--json"),
    ("marginals", "{}", "--approximate", "--time-limit", "0.1"),
    ("marginals", "{}", "--max", "--time-limit", "0.1"),
    ("sample", "{}", "-n", "2", "--time-limit", "0.1"),
    ("explain", "{}", "--time-limit", "0.3", "--quiet"),
    ("check", "{}", TWO),
    ("check", SMALL, "{}"),
    ("convert", "{}", "{out}.cfn"),
    ("convert", "{}", "{out}.h5", "--drop-cutoff"),
    ("view", "{}", "-o", "{out}.html"),
    ("view", SMALL, "{}", "-o", "{out}.html"),
    ("shard", "{}", "{out}.parts", "--parts", "2"),
    ("verify", "{}", "{proof}"),
    ("verify", SMALL, "{}"),
    ("compare", "{}", "--methods", "icm", "--time-limit", "0.1", "--json"),
    ("train", "{}", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--model", "crf", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--model", "extreme", "-o", "{out}.fgx", *QUICK),
    ("train", "{}", "--task", "parse", "-o", "{out}.npz", *QUICK),
    ("train", "{}", "--task", "multilabel", "-o", "{out}.npz", *QUICK),
    ("train", WORDS, "--templates", "{}", "-o", "{out}.npz", *QUICK),
    ("predict", "{tagger}", "{}", "-o", "{out}.txt"),
    ("predict", "{rows}", "{}", "-o", "{out}.txt"),
    ("predict", "{}", WORDS, "-o", "{out}.txt"),
    ("evaluate", "{tagger}", "{}"),
    ("evaluate", "{}", WORDS, "--json"),
]


class HangError(Exception):
    """The command has not ended."""


def run(arguments: list[str]) -> tuple[int, str, str]:
    """The command line in this process: exit code and what it printed."""

    def hang(*_: Any) -> None:
        raise HangError

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="surrogateescape") for _ in range(2))
    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = fginfer_main(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "surrogateescape"))  # type: ignore[attr-defined]
    return code, texts[0], texts[1]


def make_sources(folder: Path) -> list[Path]:
    """The corpus, the models, and files that cannot be stored as text: models in binary form, trained ones, a proof."""
    made = [folder / name for name in ("small.npz", "small.h5", "tagger.npz", "rows.npz", "packed.gz", "run.proof")]
    for arguments in (
        ["convert", SMALL, str(made[0])],
        ["convert", SMALL, str(made[1])],
        ["train", WORDS, "-o", str(made[2]), *QUICK],
        ["train", str(ROOT / "tests" / "corpus" / "rows.svm"), "--task", "multilabel", "-o", str(made[3]), *QUICK],
        ["solve", SMALL, "--quiet", "--proof", str(made[5])],
    ):
        code, _, err = run(arguments)
        if code not in (0, 2):
            raise RuntimeError(f"{arguments}: {err}")
    made[4].write_bytes(gzip.compress(Path(SMALL).read_bytes()))
    return [*CORPUS, *MODELS, *made]


def spoken(command: tuple[str, ...], path: Path, folder: Path) -> list[str]:
    return [
        word.format(
            path, tagger=folder / "tagger.npz", rows=folder / "rows.npz", proof=folder / "run.proof", out=folder / "out"
        )
        for word in command
    ]


def fault(command: tuple[str, ...], code: int, err: str) -> str | None:
    """What is wrong with how a command ended."""
    allowed = (*DOCUMENTED, 1) if command[0] == "verify" else DOCUMENTED  # 1: the proof is not one
    if code not in allowed and not (code == 4 and command[0] == "compare"):  # no run of compare had an answer
        return f"exit code {code}"
    if "Traceback" in err:
        return "a traceback"
    if code == 3 and err.count("\n") != 1:
        return "more or less than one sentence"
    return None


def score_of(out: str) -> Any:
    try:
        found = json.loads(out)
    except ValueError:
        return None
    return found.get("score") if isinstance(found, dict) else None


def same(a: Any, b: Any) -> bool:
    return a == b or (a is not None and b is not None and abs(a - b) <= 1e-9 * max(abs(a), abs(b)))


def is_alike(source: Path, extension: str) -> bool:
    own, named = source.suffix.lower(), "." + extension.lower().split(".")[-1]
    named = ".uai" if extension == ".uai.gz" else named
    return any(own in kinds and named in kinds for kinds in ALIKE)


def pairs(args: argparse.Namespace, sources: list[Path]) -> Iterator[tuple[Path, str]]:
    for number, (source, extension) in enumerate(product(sources, EXTENSIONS)):
        if number % args.parts != args.part:
            continue
        if args.source in (None, source.name) and args.extension in (None, extension):
            yield source, extension


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", help="only commands that begin with this word")
    parser.add_argument("--source", metavar="NAME", help="only this file")
    parser.add_argument("--extension", metavar="EXT", help="only this extension")
    parser.add_argument("--part", type=int, default=0, metavar="K")
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="only pairs number K, K + N, ...")
    args = parser.parse_args()
    codes, wrong = Counter[int](), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources = make_sources(folder)
        own = {source: score_of(run(spoken(SOLVE, source, folder))[1]) for source in sources}
        for source, extension in pairs(args, sources):
            path = folder / f"x{extension}"
            shutil.copy(source, path)
            for command in COMMANDS:
                if args.command not in (None, command[0]):
                    continue
                try:
                    code, out, err = run(spoken(command, path, folder))
                    found = fault(command, code, err)
                except HangError:
                    code, out, err, found = -1, "", "", "it hangs"
                except BaseException as error:
                    code, out, err, found = -1, "", "", f"{type(error).__name__}: {error}"
                codes[code] += 1
                score = score_of(out) if command is SOLVE else None
                if (
                    None not in (score, own[source])
                    and not same(score, own[source])
                    and not is_alike(source, extension)
                ):
                    found = f"another answer: {score}, under its own name {own[source]}"
                if found is not None:
                    wrong += 1
                    said = {"source": source.name, "extension": extension, "command": " ".join(command)}
                    print(json.dumps({"fault": found, **said, "says": err[-300:]}), flush=True)
            path.unlink(missing_ok=True)
    note("renamed.py", "commands", codes.total(), wrong)
    print(f"{codes.total()} commands; exit codes {dict(sorted(codes.items()))}", file=sys.stderr)
    print(f"wrong: {wrong or 'nothing'}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
