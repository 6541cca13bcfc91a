"""Is anything false ever said? Random small models, all methods, against brute force in exact arithmetic.

    python tests/truth/differential.py --models 20000 --processes 2        about thirty solves a model
    python tests/truth/differential.py --first 4711 --models 1 --verbose   one model again, with every answer

Prints a JSON line for every false status, score, bound, gap or trace, for every answer that depends on threads, slices
or the unit of the scores, and for every exception; then counts. Exit code 1 if there was any. Models have arities up to
6, up to 30 labels, dense, shared, weighted, transposed, implicit and repeated tables, several factors over one variable
whose scores cancel, ties, hard constraints, penalties up to 1e40 times the rest, cutoffs, starts, and magnitudes from
1e-300 to 1e300; auto is led to all of its members. See
differential_models.py and differential_shapes.py for how they are made.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isnan, ldexp
from typing import Any

import numpy as np
from differential_models import REGIMES, Case, Truth, random_case, scaled
from ledger import note

from fginfer import FactorGraph, FginferError, Result, Solver, available_methods

SECONDS = 20.0  # for one solve: an answer that takes longer is reported as slow, not as false
# What gdmm does not take, and what the method "assignment" does not.
REFUSALS = (
    "finite pairwise factors only",
    "magnitudes are closer together",
    "rho is ",
    "no assignment",
    "assignment takes",
)
# Rules of auto that lead small models where they do not come by themselves. The first: presolve and parts.
_LONG: dict[str, float] = {"tiny_states": 0, "quick_work": 0, "quick_passes": 0}
_SHORT = _LONG | {"few_factors": -1, "first_round": 3e3, "longest_round": 1e4}  # rounds, and no elimination at once
_NARROW = {"narrow_entries": 40, "least_labels": 2, "left_out": 0.5, "narrow_after": 0}  # a search among few labels
_JOIN = {"clique_round": 1, "tree_round": 2, "tree_trial": 1e3, "stale_work": 1e3, "patience": 0, "little_patience": 0}
PATHS: dict[str, dict[str, float]] = {
    "plain": {},
    "long": _LONG,
    "members": _SHORT | _JOIN | {"worth_beside": 0},
    "kept": _SHORT | _JOIN | {"quick_work": 1e4, "kept": 0, "least_explored": 0, "looks": 1},  # proofs that end soon
    "huge": _SHORT | {"many_factors": 0, "late_search": 1},
    "sweeps": _SHORT | {"worth_beside": 0, "pass_too_long": 0},
    "dense": _SHORT | {"pass_too_long": 0, "dense_degree": 1, "few_labels": 2},
    "few labels": _SHORT | _NARROW | {"long_pass": 0, "large_table": 0, "narrow_times": 1.0},
    "rival": _LONG | {"sweeps_a_look": 1, "rival_sweeps": 1, "sweeps_gap": 1e30, "sweeps_gain": -1e30},  # to the sweeps
    "binary": _SHORT | {"many_binary": 0, "binary_degree": 0},
    "spins": _SHORT | {"sdp_round": 1, "crowded_sdp": 1, "sdp_degree": 0, "assignment_round": 1, "least_places": 1},
    "triples": _SHORT | {"triples_round": 1, "triples_degree": 0, "far_proof": 0},
}


@dataclass
class Answers:
    """What one model has led to."""

    case: Case
    solves: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    def report(self, kind: str, how: dict[str, Any], result: Result | None = None, **more: Any) -> None:
        said = {} if result is None else {"status": result.status, "score": result.score, "bound": result.bound}
        self.wrong.append({"kind": kind, "model": self.case.seed, "regime": self.case.regime, **how, **said, **more})


# -- one solve ---------------------------------------------------------------------------------------------------


def run(graph: FactorGraph, how: dict[str, Any]) -> Result:
    """One solve, in slices of the kind asked for."""
    settings = {k: v for k, v in how.items() if k not in ("slices", "path", "k")}
    if rules := PATHS[how.get("path", "plain")]:
        settings["rules"] = rules
    with Solver(graph, **settings) as solver:
        end = time.monotonic() + SECONDS
        if how["slices"] == "iterations":
            for _ in range(200):
                if solver.run(SECONDS, 1) != "running":
                    break
        elif how["slices"] == "short":
            for _ in range(50):
                if solver.run(2e-4) != "running":
                    break
        solver.run(max(0.0, end - time.monotonic()))
        return solver.result()


def check(answers: Answers, truth: Truth, graph: FactorGraph, how: dict[str, Any], r: Result) -> None:
    """Everything that a result says, against the truth."""

    def false(kind: str, **more: Any) -> None:
        answers.report(kind, how, r, optimum=truth.text(truth.optimum), unit=truth.unit, **more)

    cutoff = how.get("cutoff", -inf)
    if r.status == "time_limit" and "midway" not in how:
        answers.report("slow", how, r)
    if (r.labels is None) != (r.score is None):
        return false("labels without a score, or a score without labels")
    if r.labels is not None:
        assert r.score is not None
        exact = truth.score(r.labels)
        if exact is None:
            return false("a forbidden labeling")
        if r.score != graph.score(r.labels) or not truth.is_score(r.score, exact):
            false("wrong score", exact=truth.text(exact))
        if not r.score > cutoff:
            false("at or below the cutoff", cutoff=cutoff)
    best = truth.optimum
    if r.unit != truth.unit:
        false("wrong unit", said=r.unit)
    if r.bound is not None and (isnan(r.bound) or (best is not None and truth.is_below(r.bound, best))):
        false("bound below the optimum")
    if r.is_optimal and (r.score is None or best is None or truth.beats(best, r.score)):
        false("not optimal")
    if r.status == "infeasible" and best is not None and truth.is_above(graph, cutoff):
        false("not infeasible", cutoff=cutoff)
    if r.status == "gap_reached":
        gap = None if r.score is None or r.bound is None else truth.gap(r.score, r.bound)
        most = Fraction(min(how["gap"], 1e308)) * Fraction(1 + 1e-12)
        if gap is None or gap > most or r.gap is None or r.gap > how["gap"]:
            false("gap not reached", gap=r.gap)
    check_trace(r, truth, false)


def check_trace(r: Result, truth: Truth, false: Any) -> None:
    score, bound, seconds = -inf, inf, 0.0
    for point in r.trace:
        new_score = -inf if point.score is None else point.score
        new_bound = inf if point.bound is None else point.bound
        if new_score < score or (point.bound is not None and new_bound > bound) or point.seconds < seconds:
            return false("the trace goes back")
        score, bound, seconds = new_score, min(bound, new_bound), point.seconds
        if truth.optimum is not None and point.bound is not None and truth.is_below(bound, truth.optimum):
            return false("trace: bound below the optimum")
    if r.score is not None and (not r.trace or r.trace[-1].score != r.score):
        false("the trace does not end at the score")
    return None


def key(r: Result, k: int = 0) -> tuple[Any, ...]:
    """What must not depend on threads, slices and, times 2^k, on the unit of the scores."""
    score = None if r.score is None else ldexp(r.score, -k)
    bound = None if r.bound is None else ldexp(r.bound, -k)
    return r.status, score, bound, r.iterations, None if r.labels is None else tuple(r.labels.tolist())


# -- one model ---------------------------------------------------------------------------------------------------


def variants(rng: np.random.Generator, method: str, truth: Truth) -> list[dict[str, Any]]:
    """The settings of one method on one model: a plain run first, and some that must give the same answer."""
    how: dict[str, Any] = {"method": method, "seed": int(rng.integers(1000)), "slices": "none", "threads": 1}
    how["gap"] = float(rng.choice([0.0, 1e-6, 1e-6, 0.01]))
    how["max_iterations"] = int(rng.choice([2, 10, 40])) if method != "auto" else int(rng.choice([1, 4]))
    if truth.optimum is not None and rng.random() < 0.2:
        how["cutoff"] = truth.near_optimum(rng)
    if rng.random() < 0.2:
        how["warm_start"] = truth.random_labels(rng)
    if method in ("bnb", "edac", "dolls", "slabs") and rng.random() < 0.3:
        del how["max_iterations"]
    if method in ("gdmm", "ad3") and rng.random() < 0.3:
        how["rho"] = min(float(truth.unit * 10 ** rng.uniform(-3, 3)), 1e308)
    if method == "gdmm" and rng.random() < 0.3:
        how["eta"] = float(rng.choice([0.1, 1.0, 1.9]))
    if method == "bp" and rng.random() < 0.5:
        how["damping"] = float(rng.choice([0.0, 0.3, 0.99]))
    if method == "trws" and rng.random() < 0.4:
        how["precision"] = int(rng.choice([1, 2]))
    if method == "gdmm" and rng.random() < 0.5:
        how["formulation"] = str(rng.choice(["tables", "binary"]))
    elif method == "gdmm":
        how["access"] = str(rng.choice(["auto", "sorted", "dense"]))
        how["sweep"], how["search"] = (str(rng.choice(["auto", "on", "off", "off"])) for _ in range(2))
    if method == "auto":
        how["presolve"] = bool(rng.random() < 0.8)
        how["path"] = str(rng.choice(list(PATHS)))
        how["max_iterations"] = int(rng.choice([1, 4, 12]))
    out = [how]
    if rng.random() < 0.3:
        out.append(how | {"threads": int(rng.choice([2, 3, 4]))})
    if rng.random() < 0.3:
        out.append(how | {"slices": str(rng.choice(["iterations", "short"]))})
    return out


def solve_case(seed: int, regime: str | None, methods: tuple[str, ...], verbose: bool) -> Answers:
    rng = np.random.default_rng([seed, 1])
    case = random_case(seed, regime)
    answers = Answers(case)
    try:
        graph = case.graph()
        graph.model.normalised()
    except FginferError:  # sums that could overflow, scores too far apart
        answers.refused += 1
        return answers
    truth = Truth(case)
    shift = case.random_shift(rng)
    moved = None if shift is None else scaled(case, shift).graph()
    for method in methods:
        hows = variants(rng, method, truth)
        first = None
        for how in hows:
            first = answer(answers, truth, graph, how, first, verbose)
        if moved is not None and first is not None:
            how = hows[0] | {"k": shift}
            own = {name: how[name] for name in ("cutoff", "rho") if name in how}
            how |= {name: ldexp(x, shift) for name, x in own.items()}
            if all(ldexp(how[name], -shift) == x for name, x in own.items()):  # there may be no such number there
                answer(answers, Truth(scaled(case, shift)), moved, how, first, verbose)
    return answers


def answer(
    answers: Answers, truth: Truth, graph: FactorGraph, how: dict[str, Any], first: Any, verbose: bool
) -> tuple[Any, ...] | None:
    """Solves, checks and compares; returns what further runs are compared with."""
    try:
        result = run(graph, how)
    except FginferError as error:
        if any(words in str(error) for words in REFUSALS):
            answers.refused += 1
        else:
            answers.report("exception", how, error=str(error))
        return first
    except Exception:
        answers.report("exception", how, error=traceback.format_exc()[-900:])
        return first
    answers.solves += 1
    answers.statuses[result.status] += 1
    if verbose:
        print(how, result.status, result.score, result.bound, result.iterations)
    check(answers, truth, graph, how, result)
    own = key(result, how.get("k", 0))
    if first is not None and "time_limit" not in (first[0], result.status) and own != first:
        what = "depends on the unit" if "k" in how else "depends on threads or slices"
        answers.report(what, how, result, before=str(first[:4]), after=str(own[:4]), same_labels=own[4] == first[4])
    return own if first is None else first


# -- many models -------------------------------------------------------------------------------------------------


def chunk(first: int, n: int, regime: str | None, methods: tuple[str, ...], verbose: bool, until: float) -> Any:
    solves, refused, statuses, wrong = 0, 0, Counter[str](), []
    for seed in range(first, first + n):
        if time.time() > until:
            break
        try:
            answers = solve_case(seed, regime, methods, verbose)
        except Exception:
            wrong.append({"kind": "the bench itself", "model": seed, "error": traceback.format_exc()[-900:]})
            continue
        solves, refused = solves + answers.solves, refused + answers.refused
        statuses += answers.statuses
        wrong += answers.wrong
    return solves, refused, statuses, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--models", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=inf, help="stop after so long")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--regime", choices=sorted(REGIMES), help="how scores are drawn (default: all kinds)")
    parser.add_argument("--method", action="append", help="only these methods")
    parser.add_argument("--verbose", action="store_true", help="print every answer")
    args = parser.parse_args()
    methods = tuple(args.method or available_methods())
    until, size = time.time() + args.seconds, 1 if args.verbose else 50
    starts = range(args.first, args.first + args.models, size)
    solves, refused, statuses, kinds = 0, 0, Counter[str](), Counter[str]()
    with ProcessPoolExecutor(args.processes) as pool:
        jobs = [
            pool.submit(chunk, s, min(size, starts.stop - s), args.regime, methods, args.verbose, until) for s in starts
        ]
        for job in as_completed(jobs):
            more, more_refused, more_statuses, wrong = job.result()
            solves, refused = solves + more, refused + more_refused
            statuses += more_statuses
            for found in wrong:
                kinds[found["kind"]] += 1
                print(json.dumps(found, default=str), flush=True)
    note("differential.py", "solves", solves, kinds.total() - kinds["slow"])
    print(f"{solves} solves, {refused} refused; {dict(statuses)}", file=sys.stderr)
    print(f"wrong: {dict(kinds) or 'nothing'}", file=sys.stderr)
    return 1 if set(kinds) - {"slow"} else 0


if __name__ == "__main__":
    sys.exit(main())
