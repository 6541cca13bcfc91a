"""fginfer solve --k-best: several labelings, best first."""

from __future__ import annotations

import argparse
import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from fginfer import __version__
from fginfer.commands.common import json_text, load, model_json, print_answer
from fginfer.commands.reserve import Reserve
from fginfer.commands.stops import stop_signals
from fginfer.errors import SettingsError
from fginfer.k_best import KBest, k_best
from fginfer.log import logger, model_line, start_line
from fginfer.startup import DONE, FAILED, INFEASIBLE, STOPPED
from fginfer.terminal import Terminal

SHOWN_LABELS = 20  # labels of each labeling, where people read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--k-best", type=int, metavar="N", help="the N best labelings, each with its proof")
    parser.add_argument(
        "--min-distance",
        type=int,
        metavar="D",
        help="with --k-best: each labeling differs from all before it in at least D variables",
    )
    parser.add_argument("--within", type=float, metavar="W", help="with --k-best: only scores at most W below the best")


def check(args: argparse.Namespace) -> None:
    """What belongs to --k-best alone, and what has no meaning with it."""
    if args.k_best is None:
        for name, value in (("--min-distance", args.min_distance), ("--within", args.within)):
            if value is not None:
                raise SettingsError(f"{name} is said of the labelings of --k-best N, which is missing")
        return
    given = {
        "--start": args.start is not None,
        "--out": args.out is not None,
        "--watch": args.watch is not None,
        "--trace": args.trace,
        "--option": bool(args.option),
        "--no-presolve": args.no_presolve,
        "--max-iterations": args.max_iterations is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise SettingsError(f"{name} has no meaning with --k-best")


def run(args: argparse.Namespace) -> int:
    with ExitStack() as until_shown:
        with Terminal():
            logger.setLevel(logging.WARNING if args.quiet else logging.INFO)
            logger.info(start_line(__version__, args.method or "k-best", args.threads, args.seed))
            graph, evidence = load(args)
            sizes = model_json(graph)
            logger.info(model_line(Path(args.model).name, *sizes.values()))
            if args.cutoff is not None:
                graph = graph.copy()
                graph.cutoff = max(graph.cutoff, args.cutoff)
            stops = until_shown.enter_context(stop_signals())
            reserve = Reserve(graph.n_variables * min(args.k_best, 1000))
            answers = k_best(
                graph,
                args.k_best,
                args.min_distance or 0,
                args.within,
                evidence=evidence,
                method=args.method,
                time_limit=args.time_limit,
                seed=args.seed,
                threads=args.threads,
            )
            try:
                len(answers)
                status: str = answers.status
            except KeyboardInterrupt:
                status = "interrupted"
            except MemoryError as error:
                status = "failed"
                reserve.release()
                logger.error(f"out of memory; these had been found until then ({error})")
            stops.answering = True
            reserve.release()
        text = json_text(as_json(answers, status, sizes)) if args.json else table(answers, status)
        shown = print_answer(text)
    if status == "failed" or not shown:
        return FAILED
    if status == "exhausted" and not answers.found:
        return INFEASIBLE
    return DONE if status in ("complete", "exhausted") else STOPPED


def as_json(answers: KBest, status: str, sizes: dict[str, int]) -> dict[str, Any]:
    """One object; its results are those of `solve`, without the trace."""
    results = [result.to_dict() for result in answers.found]
    for result in results:
        del result["trace"]
    return {"version": __version__, "model": sizes, "status": status, "results": results}


def table(answers: KBest, status: str) -> str:
    """A line for each labeling: its rank, its score, how far it is below the best, where it differs from the best."""
    best = answers.found[0] if answers.found else None
    lines = [f"{'rank':>4}  {'score':>18}  {'below best':>12}  {'differ':>6}  labels"]
    for rank, result in enumerate(answers.found, 1):
        assert best is not None
        assert best.score is not None
        assert result.score is not None
        assert best.labels is not None
        differ = np.count_nonzero(result.labels != best.labels)
        labels = " ".join(result.first_labels(SHOWN_LABELS))
        more = " ..." if len(best.labels) > SHOWN_LABELS else ""
        lines.append(
            f"{rank:>4}  {result.score:>18.12g}  {best.score - result.score:>12.6g}  {differ:>6}  {labels}{more}"
        )
    return "\n".join([*lines, f"status  {status.replace('_', ' ')}"])
