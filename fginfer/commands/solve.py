"""fginfer solve: the best labeling of a model, with a bound."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fginfer import __version__
from fginfer.commands.common import add_model, conditioned, json_text, load, model_json, option
from fginfer.commands.stops import Stops, stop_signals
from fginfer.core import clock
from fginfer.errors import FginferError, FormatError, SettingsError
from fginfer.formats import read_solution, write_solution
from fginfer.formats.streams import check_writable
from fginfer.graph import FactorGraph
from fginfer.log import RunLog, logger, model_line, start_line
from fginfer.methods import available_methods, default_method
from fginfer.result import Progress, Result, known
from fginfer.solver import Solver, check_seconds
from fginfer.startup import DONE, FAILED, INFEASIBLE, STOPPED
from fginfer.terminal import Terminal

EXIT = {"optimal": DONE, "gap_reached": DONE, "infeasible": INFEASIBLE, "failed": FAILED}

EXAMPLES = """examples:
  fginfer solve grid.uai.gz --time-limit 10
  fginfer solve network.uai --evidence network.uai.evid --out network.MPE
  fginfer solve matching.npz --method gdmm --option rho=0.1 --json --trace > run.json

exit codes: 0 optimal or gap reached, 1 proven infeasible, 2 stopped with a gap (converged, limit, Ctrl-C), 3 bad input,
4 failed: no memory, a bug, or the result could not be written where it was to go; what was found is printed
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "solve",
        help="find the best labeling of a model",
        description="Finds the labeling with the highest score, and an upper bound on what is possible.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    names = ", ".join(available_methods())
    parser.add_argument("--method", metavar="M", help=f"one of {names} (default {default_method()})")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds, set-up included (default: none)")
    parser.add_argument("--gap", type=float, default=1e-6, metavar="G", help="stop at this relative gap (default 1e-6)")
    parser.add_argument(
        "--cutoff",
        type=float,
        metavar="C",
        help="only scores above C count; none: infeasible (default: as in the file)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default 0)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="never changes the answer (default 1)")
    parser.add_argument("--max-iterations", type=int, metavar="N", help="of the method (default: no limit)")
    parser.add_argument("--start", metavar="SOL", help="a solution file to start from")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the method, such as rho=0.1"
    )
    parser.add_argument("--no-presolve", action="store_true", help="method auto: solve the model as it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a summary")
    parser.add_argument("--trace", action="store_true", help="with --json: every improvement with its time")
    parser.add_argument("--out", metavar="SOL", help="write the labeling as a UAI solution file; -: to standard output")
    parser.add_argument("--quiet", action="store_true", help="no log")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.out == "-" and args.json:
        raise SettingsError("--json and --out - both want standard output; the JSON has the labels")
    check_seconds("--time-limit", args.time_limit)
    if args.out is not None:
        check_writable(args.out)  # better now than after an hour
    unwritten: FormatError | None = None
    with ExitStack() as until_shown:
        with Terminal() as terminal:
            logger.setLevel(logging.WARNING if args.quiet else logging.INFO)
            method = args.method or default_method()
            logger.info(start_line(__version__, method, args.threads, args.seed))
            graph, evidence = load(args)
            sizes = model_json(graph)
            logger.info(model_line(Path(args.model).name, *sizes.values()))
            start = clock.now()
            stops = until_shown.enter_context(stop_signals())
            result = _solve(args, method, graph, evidence, start, None if args.quiet else terminal, stops)
            if args.out is not None and result.labels is not None:
                try:
                    write_solution(result.labels, args.out)
                except FormatError as error:
                    unwritten = error
        if unwritten is not None:
            print(f"fginfer: {unwritten}; all labels follow", file=sys.stderr)
        shown = _show(args, result, sizes, unwritten is not None)
    return EXIT.get(result.status, STOPPED) if shown and unwritten is None else FAILED


def _show(args: argparse.Namespace, result: Result, sizes: dict[str, int], all_labels: bool) -> bool:
    """Prints the result; where stdout is full, on stderr (False)."""
    text = json_text(result_json(result, sizes, args.trace)) if args.json else summary(result, args.out, all_labels)
    try:
        print(text, file=sys.stderr if args.out == "-" and not args.json else sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{text}\nfginfer: stdout: {error.strerror}", file=sys.stderr, flush=True)
        return False
    return True


def _solve(
    args: argparse.Namespace,
    method: str,
    graph: FactorGraph,
    evidence: dict[int, int] | None,
    start: float,
    terminal: Terminal | None,
    stops: Stops,
) -> Result:
    """Solves with a log; Ctrl-C gives what was found until then."""
    log, solver, interrupted = RunLog(), None, False

    def look(progress: Progress) -> None:
        log(progress)
        if terminal is not None:
            terminal.show(progress)

    try:
        given = conditioned(graph, evidence)
        if evidence:
            logger.info(f"evidence fixes {len(evidence)} variable{'s' * (len(evidence) > 1)}")
        model, least = (graph, args.cutoff) if given is None else given.lowered(args.cutoff)
        solver = _make_solver(args, method, model, least, start)
        if args.start is not None:
            labels = read_solution(args.start, graph)
            solver.offer(labels if given is None else given.reduce(labels))
        left = None if args.time_limit is None else args.time_limit - (clock.now() - start)
        solver.run(None if left is None else max(0.0, left), callback=look)
        stops.answering = True
    except KeyboardInterrupt:
        interrupted = True
    except Exception as error:
        if solver is None or solver.status != "failed":
            raise
        stops.answering = True
        text = str(error) if isinstance(error, FginferError | MemoryError) else traceback.format_exc().rstrip()
        logger.error(f"{method} failed; this is what it had found until then\n{text}")
    if solver is None:
        return Result(method, "interrupted", None, None, None, 0, clock.now() - start, 0.0, args.threads, args.seed)
    result = solver.result(trace=args.trace, dual=False)
    if terminal is not None:
        terminal.clear()
    log.end(solver.progress(), result)
    if interrupted:
        logger.info("interrupted: this is the best labeling found until then")
    return result if given is None else given.expand_result(result, args.cutoff)


def _make_solver(
    args: argparse.Namespace, method: str, graph: FactorGraph, cutoff: float | None, start: float
) -> Solver:
    options: dict[str, Any] = dict(option(text) for text in args.option)
    if args.no_presolve:
        options["presolve"] = False
    return Solver(
        graph,
        method,
        gap=args.gap,
        seed=args.seed,
        threads=args.threads,
        max_iterations=args.max_iterations,
        cutoff=cutoff,
        start_time=start,
        **options,
    )


def result_json(result: Result, sizes: dict[str, int], trace: bool) -> dict[str, Any]:
    """The object that --json prints; standard JSON, null for what is not known."""
    data = {"version": __version__, "model": sizes, **result.to_dict()}
    if not trace:
        del data["trace"]
    return data


def exact(x: float | None) -> str:
    return "-" if x is None else f"{x:.12g}"


def summary(result: Result, out: str | None, all_labels: bool = False) -> str:
    """The result for people."""
    gap = "-" if result.gap is None else f"{result.gap:.2e}"
    lines = [
        f"status  {result.status.replace('_', ' ')}",
        f"score   {exact(result.score)}",
        f"bound   {exact(known(result.bound))}",
        f"gap     {gap}",
        f"time    {result.seconds:.2f} s",
    ]
    if result.labels is not None and all_labels:
        lines.append("labels  " + " ".join(map(str, result.labels.tolist())))
    elif result.labels is not None and out is None:
        shown = " ".join(map(str, result.labels[:30].tolist()))
        more = " ... (all of them with --out FILE or --json)" if len(result.labels) > 30 else ""
        lines.append(f"labels  {shown}{more}")
    return "\n".join(lines)
