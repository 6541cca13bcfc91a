"""fginfer solve: the best labeling of a model, with a bound."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from fginfer import __version__
from fginfer.commands import several
from fginfer.commands.common import (
    add_model,
    conditioned,
    json_text,
    load,
    model_json,
    option,
    print_answer,
    try_settings,
)
from fginfer.commands.reserve import Reserve
from fginfer.commands.stops import Stops, stop_signals
from fginfer.core import clock
from fginfer.core.rows import options_of
from fginfer.errors import FginferError, FormatError, SettingsError
from fginfer.formats import read_solution, write_solution
from fginfer.formats.streams import check_writable
from fginfer.graph import FactorGraph
from fginfer.log import RunLog, logger, model_line, start_line
from fginfer.methods import available_methods, default_method, explained, own_methods
from fginfer.parts.plan import PartsPlan
from fginfer.parts.sharded import Sharded
from fginfer.parts.solver import PartsSolver
from fginfer.result import Progress, Result, known
from fginfer.solver import Solver, check_seconds
from fginfer.startup import DONE, FAILED, INFEASIBLE, STOPPED
from fginfer.terminal import Terminal

EXIT = {"optimal": DONE, "gap_reached": DONE, "infeasible": INFEASIBLE, "failed": FAILED}

EXAMPLES = """examples:
  fginfer solve grid.uai.gz --time-limit 10
  fginfer solve network.uai --evidence network.uai.evid --out network.MPE
  fginfer solve matching.npz --method gdmm --option rho=0.1 --json --trace > run.json
  fginfer solve grid.uai.gz --k-best 10 --min-distance 5

exit codes: 0 optimal or gap reached, 2 stopped with a gap (converged, limit, Ctrl-C), 3 bad input,
4 failed: no memory, a bug, or the result could not be written where it was to go; what was found is printed,
20 proven infeasible
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "solve",
        help="find the best labeling of a model",
        description="Finds the labeling with the highest score, and an upper bound on what is possible.",
        epilog=f"{EXAMPLES}\n{explained()}",
    )
    add_model(parser)
    names = ", ".join(own_methods())
    method: Any = parser.add_argument("--method", metavar="M", help=f"one of {names} (default {default_method()})")
    method.completer = lambda **_: list(available_methods())
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds, set-up included (default: none)")
    parser.add_argument("--gap", type=float, default=1e-6, metavar="G", help="stop at this relative gap (default 1e-6)")
    parser.add_argument(
        "--cutoff",
        type=float,
        metavar="C",
        help="only scores above C count; none: infeasible (default: as in the file)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything random (default 0)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads; a run that ends by proof or iteration limit has the same answer with any number (default 1)",
    )
    parser.add_argument("--max-iterations", type=int, metavar="N", help="iterations of the method (default: no limit)")
    parser.add_argument(
        "--parts", type=int, metavar="N", help="solve the model in N parts, each by trws (or --method gdmm, auto)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, tcp://host:8786, whose workers hold the parts"
    )
    parser.add_argument("--checkpoint", metavar="DIR", help="with --parts: a folder in which rounds are saved")
    parser.add_argument("--resume", action="store_true", help="continue from the rounds that --checkpoint has saved")
    parser.add_argument("--start", metavar="SOL", help="a solution file to start from")
    options: Any = parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the method, such as rho=0.1; all of them are listed below",
    )
    options.completer = _complete_options
    parser.add_argument("--no-presolve", action="store_true", help="method auto: solve the model as it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a summary")
    parser.add_argument("--trace", action="store_true", help="with --json: every improvement with its time")
    parser.add_argument("--proof", metavar="FILE", help="write a proof of the result, for fginfer verify")
    parser.add_argument("-o", "--out", metavar="SOL", help="write labels as a UAI solution file; -: to standard output")
    parser.add_argument("--watch", metavar="PAGE", help="an HTML page of the run, rewritten every second")
    several.add_arguments(parser)
    parser.add_argument("--quiet", action="store_true", help="no log")
    parser.set_defaults(run=run)


def _complete_options(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """What the shell may put for --option, by the --method that was given before it."""
    out: list[str] = []
    for name, row in options_of(parsed_args.method or default_method()).items():
        words = {"choice": row.choices, "flag": ("true", "false")}.get(row.kind, ("",))
        out += [f"{name}={word}" for word in words if row.kind != "numbers"]
    return out


def run(args: argparse.Namespace) -> int:
    if args.out == "-" and args.json:
        raise SettingsError("--json and --out - both want standard output; the JSON has the labels")
    check_seconds("--time-limit", args.time_limit)
    options = _options(args)
    settings = {"gap": args.gap, "seed": args.seed, "threads": args.threads, "max_iterations": args.max_iterations}
    try_settings(args.method, **settings, cutoff=args.cutoff, **({} if args.k_best else options))
    several.check(args)
    if args.proof is not None and (args.k_best is not None or args.evidence is not None):
        raise SettingsError("--proof is about one labeling of a whole model: no --k-best, no --evidence")
    if args.k_best is not None:
        return several.run(args)
    for written in (args.out, args.watch):
        if written is not None:
            check_writable(written)  # better now than after an hour
    unwritten: FormatError | None = None
    with ExitStack() as until_shown:
        with Terminal() as terminal:
            logger.setLevel(logging.WARNING if args.quiet else logging.INFO)
            method = "parts" if _in_parts(args) else args.method or default_method()
            logger.info(start_line(__version__, method, args.threads, args.seed))
            graph, evidence = _load(args)
            logger.info(_model_line(args, graph))
            if graph.cutoff > -inf:
                logger.info(f"the file has a cutoff: only scores above {graph.cutoff:.12g} count")
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
        shown = _show(args, result, model_json(graph), unwritten is not None)
    return EXIT.get(result.status, STOPPED) if shown and unwritten is None else FAILED


def _load(args: argparse.Namespace) -> tuple[Any, dict[int, int] | None]:
    """The model and the evidence; a folder is a model in parts."""
    if args.model == "-" or not Path(args.model).is_dir():
        return load(args)
    for flag, given in (("--evidence", args.evidence or args.given), ("--format", args.format), ("--proof", args.proof),
                        ("--watch", args.watch), ("--start", args.start)):  # fmt: skip
        if given:
            raise SettingsError(f"{flag} is for a model in one piece; {args.model} is a folder of parts")
    return Sharded.open(args.model), None


def _model_line(args: argparse.Namespace, graph: Any) -> str:
    name = Path(args.model).name
    if isinstance(graph, Sharded):
        return f"{name}: a model in {graph.n_parts} parts"
    return model_line(name, *model_json(graph).values())


def _show(args: argparse.Namespace, result: Result, sizes: dict[str, int], all_labels: bool) -> bool:
    """Prints the result; where stdout is full, on stderr (False)."""
    text = json_text(result_json(result, sizes, args.trace)) if args.json else summary(result, args.out, all_labels)
    if args.out == "-" and not args.json:
        print(text, file=sys.stderr, flush=True)
        return True
    return print_answer(text)


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
    log, solver, interrupted, failed = RunLog(method), None, False, False
    watch = None
    reserve = Reserve(graph.n_variables)

    def look(progress: Progress) -> None:
        log(progress)
        if terminal is not None:
            terminal.show(progress)
        if watch is not None and solver is not None and watch.due:
            found = solver.result(dual=False)
            watch.show(found if given is None else given.expand_result(found))

    try:
        given = conditioned(graph, evidence)
        if evidence:
            logger.info(f"evidence fixes {len(evidence)} variable{'s' * (len(evidence) > 1)}")
        solver = _make_solver(args, method, graph if given is None else given.graph, args.cutoff, start)
        if args.start is not None:
            labels = read_solution(args.start, graph)
            solver.offer(labels if given is None else given.reduce(labels))
        watch = None if args.watch is None else _watch(args, graph)
        left = None if args.time_limit is None else args.time_limit - (clock.now() - start)
        solver.run(None if left is None else max(0.0, left), callback=look)
        stops.answering = True
    except KeyboardInterrupt:
        interrupted = True
    except Exception as error:
        failed = solver is not None and (solver.status == "failed" or isinstance(error, MemoryError))
        if not failed:
            raise
        stops.answering = True
        reserve.release()
        text = str(error) if isinstance(error, FginferError | MemoryError) else traceback.format_exc().rstrip()
        logger.error(f"{method} failed; this is what it had found until then\n{text}")
    reserve.release()
    if solver is None:
        return Result(method, "interrupted", None, None, None, 0, clock.now() - start, 0.0, args.threads, args.seed)
    result = solver.result(trace=args.trace or watch is not None, dual=False)
    if args.proof is not None and not failed and not interrupted:
        result = replace(result, proof=solver.prove())
        logger.info(f"proof: {result.proof}")
    if failed:
        result = replace(result, status="failed")
    if terminal is not None:
        terminal.clear()
    log.end(solver.progress(), result)
    if interrupted:
        logger.info("interrupted: this is the best labeling found until then")
    solver.close()
    result = result if given is None else given.expand_result(result)
    if watch is not None:
        watch.end(result)
    return result


def _watch(args: argparse.Namespace, graph: FactorGraph) -> Any:
    from fginfer.viewer.watch import Watch

    return Watch(graph, args.watch, "model" if args.model == "-" else Path(args.model).name)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    options = dict(option(text) for text in args.option)
    return options | {"presolve": False} if args.no_presolve else options


def _in_parts(args: argparse.Namespace) -> bool:
    return args.parts is not None or args.scheduler is not None or (args.model != "-" and Path(args.model).is_dir())


def _make_solver(
    args: argparse.Namespace, method: str, graph: FactorGraph, cutoff: float | None, start: float
) -> Solver:
    takes_turns = isinstance(graph, Sharded) and args.scheduler is None
    memory = args.max_memory if takes_turns else None
    plan = PartsPlan(args.parts, args.scheduler, None, args.checkpoint, args.resume, memory=memory)
    plan.check()
    if args.checkpoint is not None and not _in_parts(args):
        raise SettingsError("a checkpoint is of a solve in parts: say how many with --parts")
    make = partial(PartsSolver, plan=plan) if _in_parts(args) else Solver
    return make(
        graph,
        method=args.method if isinstance(make, partial) else method,
        gap=args.gap,
        seed=args.seed,
        threads=args.threads,
        max_iterations=args.max_iterations,
        cutoff=cutoff,
        start_time=start,
        proof=args.proof,
        **_options(args),
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
        lines.append("labels  " + " ".join(result.first_labels(len(result.labels))))
    elif result.labels is not None and out is None:
        shown = " ".join(result.first_labels(30))
        more = " ... (all of them with --out FILE or --json)" if len(result.labels) > 30 else ""
        lines.append(f"labels  {shown}{more}")
    return "\n".join(lines)
