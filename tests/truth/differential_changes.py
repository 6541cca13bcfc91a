"""Does a graph stay what it should be? Random changes with refusals in between, and every kind of question after them.

    python tests/truth/differential_changes.py --stories 2000 [--first SEED] [--question k_best]

A story is a graph that changes (adders, setters, weights, removals, fix, free, push, pop, new variables, constraints of
all kinds, copies, calls that are refused) beside a model that is kept in plain lists (differential_kept.py). After some
of the changes all scores are compared, and a question is asked that has a known answer: *solve* by any method, *follow*
(a solver that was made at the beginning and follows), *parts*, *batch*, *k_best*, *max_marginals*, *marginals*,
*explain*, *file*, *condition*. Prints a JSON line with the whole story for everything false, then counts. Exit code 1
if there was any.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import exp, inf, log
from pathlib import Path
from typing import Any

import numpy as np
from differential import PATHS, REFUSALS
from differential_kept import Falsehood, Kept, same
from ledger import note

import fginfer
from fginfer import FginferError, Result, Solver, available_methods

SECONDS = 20.0
Truth = dict[tuple[int, ...], Any]


class Asker:
    """Questions about one story; `truth` has the scores of all labelings as they are now."""

    def __init__(self, rng: np.random.Generator, kept: Kept) -> None:
        self.rng, self.kept, self.solves = rng, kept, 0
        self.truth: Truth = {}
        self.asked = Counter[str]()

    @property
    def best(self) -> Any:
        """The best score that counts; -inf if there is none."""
        found = max(self.truth.values())
        return found if found > self.kept.model.cutoff else -inf

    def settings(self, method: str | None = None) -> dict[str, Any]:
        rng = self.rng
        how: dict[str, Any] = {"method": method or str(rng.choice([*available_methods(), "auto", "auto", "auto"]))}
        how |= {
            "seed": int(rng.integers(100)),
            "threads": int(rng.choice([1, 1, 2])),
            "gap": float(rng.choice([0, 1e-6])),
        }
        if how["method"] == "auto":
            how["rules"] = PATHS[str(rng.choice(list(PATHS)))]
            how["presolve"] = bool(rng.random() < 0.8)
        else:
            how["max_iterations"] = int(rng.choice([1, 20, 200]))
        if how["method"] == "gdmm":
            how |= rng.choice([{}, {"variant": "published"}, {"formulation": "tables"}, {"sweep": "off"}])  # type: ignore[arg-type]
        return how

    def judge(self, r: Result, best: Any = None, complete: bool = False) -> None:
        """What a result says, beside the truth; a `complete` run must have ended with a proof."""
        self.solves += 1
        best = self.best if best is None else best
        said = f"{r.method} says {r.status}, score {r.score}, bound {r.bound}; the best is {float(best)}"
        if r.labels is not None and not (
            same(r.score, self.truth[tuple(r.labels.tolist())]) and r.score > self.kept.model.cutoff  # type: ignore[arg-type]
        ):
            raise Falsehood(f"{said}: its labeling has {self.truth[tuple(r.labels.tolist())]}")
        if r.bound is not None and best > -inf and Fraction(min(r.bound, 1e300)) < best - Fraction(1e-9):
            raise Falsehood(f"{said}: the bound is false")
        if r.status == "optimal" and (r.score is None or not same(r.score, best)):
            raise Falsehood(f"{said}: it is not optimal")
        if r.status == "infeasible" and best > -inf:
            raise Falsehood(f"{said}: it is not infeasible")
        if complete and r.unit > 0 and r.status not in ("optimal", "infeasible", "gap_reached"):
            raise Falsehood(f"{said}: it has no proof")

    # -- questions ---------------------------------------------------------------------------------------------

    def solve(self) -> None:
        how = self.settings()
        self.kept.story.append(f"solve(**{how})")
        start = [int(self.rng.integers(k)) for k in self.kept.model.cards] if self.rng.random() < 0.3 else None
        r = fginfer.solve(self.kept.graph, time_limit=SECONDS, warm_start=start, **how)
        self.judge(r, complete=how["method"] == "auto" and not is_endless(how))

    def follow(self) -> None:
        if not self.kept.watchers:
            how = self.settings()
            how["gap"] = 0.0
            if is_endless(how):
                how["rules"] = {}
            self.kept.story.append(f"solver = Solver(**{how})")
            self.kept.watchers.append(Solver(self.kept.graph, **how))
        else:
            self.kept.story.append("solver.update()")
            self.kept.watchers[0].update()
        solver = self.kept.watchers[0]
        some = None if self.rng.random() < 0.5 else int(self.rng.integers(0, 5))
        solver.run(SECONDS, some)
        self.judge(solver.result(), complete=some is None and solver.result().method == "auto")

    def parts(self) -> None:
        if not len(self.kept.model.cards):
            return
        parts = int(self.rng.integers(1, len(self.kept.model.cards) + 1))
        self.kept.story.append(f"solve(parts={parts})")
        self.judge(fginfer.solve(self.kept.graph, parts=parts, time_limit=SECONDS, max_iterations=50))

    def batch(self) -> None:
        model, rng = self.kept.model, self.rng
        if self.kept.graph.rules or model.cutoff > -inf:
            return
        rows = [[rng.integers(-8, 9, k) / 4.0 for k in model.cards] for _ in range(4)]
        self.kept.story.append(f"solve_batch({[[u.tolist() for u in row] for row in rows]})")
        found = fginfer.solve_batch(
            self.kept.graph, [np.concatenate(row) for row in rows], threads=int(rng.integers(1, 3))
        )
        own = [x for x in model.terms.values() if len(x.scope) != 1]
        for row, labels, score, status in zip(rows, found.labels, found.scores, found.statuses, strict=True):
            truth: Truth = {}
            for x in self.truth:
                values = [Fraction(float(u[a])) for u, a in zip(row, x, strict=True)]
                values += [term.value(x, model.tables) for term in own]
                truth[x] = -inf if -inf in values else sum(values, Fraction(0))
            best = max(truth.values())
            said = f"solve_batch says {status}, {score}, {labels.tolist()}; the best is {float(best)}"
            self.solves += 1
            if (status == "infeasible") != (best == -inf):
                raise Falsehood(said)
            if best > -inf and not (same(score, best) and same(score, truth[tuple(labels.tolist())])):
                raise Falsehood(said)

    def k_best(self) -> None:
        k, distance = int(self.rng.integers(1, 12)), min(int(self.rng.choice([0, 0, 1, 2])), len(self.kept.model.cards))
        self.kept.story.append(f"k_best({k}, {distance})")
        found = list(fginfer.k_best(self.kept.graph, k, distance, time_limit=SECONDS))
        self.solves += 1
        chosen: list[tuple[int, ...]] = []
        for r in found:
            assert r.labels is not None
            assert r.score is not None
            x = tuple(r.labels.tolist())
            far = {y: s for y, s in self.truth.items() if all(_apart(y, c) >= max(1, distance) for c in chosen)}
            best = max(far.values(), default=-inf)
            if x not in far or not same(r.score, self.truth[x]) or not same(r.score, best):
                raise Falsehood(f"answer {len(chosen)} of k_best is {r.score} at {x}; the best left is {best}")
            chosen.append(x)
        left = [s for y, s in self.truth.items() if all(_apart(y, c) >= max(1, distance) for c in chosen)]
        if len(found) < k and max(left, default=-inf) > self.kept.model.cutoff:
            raise Falsehood(f"k_best ends after {len(found)} answers of {k}; there is one of {max(left)}")

    def max_marginals(self) -> None:
        self.kept.story.append("max_marginals()")
        if self.best == -inf:
            return
        found = fginfer.max_marginals(self.kept.graph, time_limit=SECONDS)
        self.solves += 1
        for v, card in enumerate(self.kept.model.cards):
            for label in range(card):
                best = max(s for x, s in self.truth.items() if x[v] == label)
                low, high = float(found.low[v][label]), float(found.high[v][label])
                if best <= self.kept.model.cutoff and low == -inf:
                    continue
                if best > -inf and (high < float(best) - 1e-9 or low > float(best) + 1e-9):
                    raise Falsehood(f"max_marginals of {v}, {label}: {low} to {high}, not {best}")
                if (best == -inf and low > -inf) or (found.exact and not same(low, best)):
                    raise Falsehood(f"max_marginals of {v}, {label}: {low}, not {best}")

    def marginals(self) -> None:
        self.kept.story.append("marginals()")
        if max(self.truth.values()) == -inf or self.kept.model.cutoff > -inf or self.kept.graph.rules:
            return
        found = fginfer.marginals(self.kept.graph)
        self.solves += 1
        weights = {x: 0.0 if s == -inf else exp(float(s)) for x, s in self.truth.items()}
        z = sum(weights.values())
        if abs(found.log_z - log(z)) > 1e-9 * max(1.0, abs(log(z))):
            raise Falsehood(f"log Z is {found.log_z}, not {log(z)}")
        for v, card in enumerate(self.kept.model.cards):
            meant = [sum(w for x, w in weights.items() if x[v] == label) / z for label in range(card)]
            if not np.allclose(found.variables[v], meant, atol=1e-9):
                raise Falsehood(f"marginals of {v} are {found.variables[v]}, not {meant}")

    def explain(self) -> None:
        self.kept.story.append("explain()")
        found = fginfer.explain(self.kept.graph, time_limit=SECONDS)
        self.solves += 1
        if found.infeasible is not None and found.infeasible != (self.best == -inf):
            raise Falsehood(f"explain says infeasible={found.infeasible}; the best is {self.best}")

    def file(self) -> None:
        suffix = (
            ".npz"
            if self.kept.graph.rules or self.kept.model.cutoff > -inf
            else str(self.rng.choice([".npz", ".h5", ".LG"]))
        )
        self.kept.story.append(f"through {suffix}")
        with tempfile.TemporaryDirectory() as folder:
            fginfer.write(self.kept.graph, Path(folder) / f"m{suffix}")
            again = fginfer.read(Path(folder) / f"m{suffix}")
        for x, meant in self.truth.items():
            if not same(again.score(x), meant):
                raise Falsehood(f"through {suffix} the score of {x} is {again.score(x)}, not {meant}")
        self.judge(fginfer.solve(again, time_limit=SECONDS), complete=True)

    def condition(self) -> None:
        model = self.kept.model
        given = {v: int(self.rng.integers(k)) for v, k in enumerate(model.cards) if self.rng.random() < 0.4}
        self.kept.story.append(f"evidence {given}")
        best = max((s for x, s in self.truth.items() if all(x[v] == a for v, a in given.items())), default=-inf)
        best = best if best > model.cutoff else -inf
        r = fginfer.solve(self.kept.graph, evidence=given, time_limit=SECONDS)
        if r.labels is not None and any(r.labels[v] != a for v, a in given.items()):
            raise Falsehood("the labeling is not that of the evidence")
        self.judge(r, best, complete=True)


def _apart(x: tuple[int, ...], y: tuple[int, ...]) -> int:
    return sum(a != b for a, b in zip(x, y, strict=True))


QUESTIONS: dict[str, Callable[[Asker], None]] = {
    "solve": Asker.solve,
    "follow": Asker.follow,
    "parts": Asker.parts,
    "batch": Asker.batch,
    "k_best": Asker.k_best,
    "max_marginals": Asker.max_marginals,
    "marginals": Asker.marginals,
    "explain": Asker.explain,
    "file": Asker.file,
    "condition": Asker.condition,
}


def tell(seed: int, questions: list[str]) -> tuple[int, Counter[str], dict[str, Any] | None]:
    """One story: solves, what was asked, and what was false."""
    rng = np.random.default_rng(seed)
    kept = Kept(rng)
    kept.story.append(f"FactorGraph({kept.model.cards})")
    asker, asked = Asker(rng, kept), Counter[str]()
    try:
        for _ in range(int(rng.integers(2, 9))):
            for _ in range(int(rng.integers(1, 7))):
                kept.step()
            asker.truth = kept.compare()
            name = str(rng.choice(questions))
            asked[name] += 1
            QUESTIONS[name](asker)
    except Falsehood as error:
        return asker.solves, asked, {"kind": str(error), "story": kept.story}
    except FginferError as error:
        if not any(words in str(error) for words in REFUSALS):
            return asker.solves, asked, {"kind": f"exception: {error}", "story": kept.story}
    except Exception:
        return asker.solves, asked, {"kind": traceback.format_exc()[-900:], "story": kept.story}
    finally:
        for solver in kept.watchers:
            solver.close()
    return asker.solves, asked, None


def is_endless(how: dict[str, Any]) -> bool:
    """Whether rules make every model one that is too large for proofs."""
    return bool({"many_factors", "long_pass"} & set(how.get("rules", ())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--stories", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=inf, help="stop after so long")
    parser.add_argument("--question", action="append", choices=sorted(QUESTIONS), help="only these questions")
    args = parser.parse_args()
    solves, wrong, asked, until = 0, 0, Counter[str](), time.monotonic() + args.seconds
    for seed in range(args.first, args.first + args.stories):
        if time.monotonic() > until:
            break
        more, said, found = tell(seed, args.question or list(QUESTIONS))
        solves, asked = solves + more, asked + said
        if found is not None:
            wrong += 1
            print(json.dumps({"seed": seed, **found}, default=str), flush=True)
    note("differential_changes.py", "solves", solves, wrong)
    print(f"{solves} solves; {dict(asked)}", file=sys.stderr)
    print(f"wrong: {wrong or 'nothing'}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
