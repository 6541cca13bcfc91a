"""Parameters in the reference: those that a docstring explains become fields, common words are explained once, here.

Docstrings write parameters as `name : text` (in a section or a paragraph, several to a line) or in two columns. Words
that mean the same wherever they occur are in WORDS; a test makes sure that a parameter is in one of the two.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

# A name, or OWNER.name where the word means something else there.
WORDS = {
    "X": "the inputs: rows, sequences of rows, or examples, as the class says",
    "y": "the labels of X",
    "path": "name of a file; a name that ends in .gz, .xz or .bz2 is compressed",
    "offsets": "where each sequence begins in concatenated rows, and one more entry: the number of rows",
    "sample_weight": "one number for each example, which multiplies its loss",
    "labels": "one label for each variable, or label numbers where a source is asked",
    "name": "what the constraint or variable is called in errors, explanations and files",
    "penalty": "None: the constraint is hard; a number: what a violation costs",
    "per_unit": "the penalty counts once for each unit of violation",
    "when": "a literal: where it is false, the constraint does not count",
    "weights": "one number for each feature and label; a vector of the learner's dimension",
    "threads": "how many threads work at once; the answer does not depend on it",
    "n_jobs": "how many threads work at once; the answer does not depend on it",
    "seed": "of everything random; the answer depends on it",
    "random_state": "a seed, or a numpy RandomState, of everything random",
    "time_limit": "seconds, set-up included; None: no limit",
    "max_iter": "the most passes over the data",
    "max_iterations": "the most iterations of the method; None: no limit",
    "tol": "relative gap at which the run ends",
    "gap": "relative gap at which the run ends",
    "verbose": "prints the log to stderr",
    "callback": "called with a look at where the run stands; a true return value ends it",
    "warm_start": "where to start from: an earlier result, a labeling, or the weights of the last fit",
    "cutoff": "only scores above it count",
    "evidence": "variables that are known: {variable: label}, or a UAI evidence file",
    "method": "one of fginfer.available_methods(); None chooses",
    "options": "of the method: see the manual's page on options",
    "solver_options": "of the solver: see the manual's page on learning options",
    "messages": "one message for each variable of the factor: {label: value}, a pair of arrays, or None",
    "message": "{label: value}, a pair of arrays (labels ascending, values), or None",
    "excluded": "states that must not be the answer",
    "hint": "a state that may be good: saves work and changes nothing else",
    "hints": "a hint for each question",
    "n_best": "how many of the best states each question wants",
    "n": "how many",
    "k": "how many of the best",
    "x": "queries: a row, or several",
    "probes": "clusters that a search visits; None: as many as an exact answer needs",
    "candidates": "rows that a search by codes scores exactly",
    "clusters": "groups of rows that an index makes; 0 chooses",
    "rounds": "passes of the grouping",
    "keep": "what is kept between calls",
    "rows": "a matrix, one row for each label or sample",
    "values": "the numbers, in the order of the entries",
    "shape": "how many labels each axis has",
    "factor": "the number of a factor, or its handle",
    "variables": "numbers or names of variables",
    "rules": "constraints",
    "kind": "which kind of graph",
    "given_factors": "how many factors were given, before any were added",
    "constant": "a score that every labeling has",
    "card": "how many labels",
    "end": "a moment of fginfer.core.clock, or where each answer ends",
    "start": "an earlier Result, or a labeling",
    "start_time": "the moment from which seconds count; None: now",
    "most": "how many at most",
    "memory": "bytes that may be used",
    "sentences": "lists of tokens",
    "truth": "the labels that are right",
    "answer": "the labels that were said",
    "answers": "labels of each example",
    "example": "the number of an example",
    "examples": "numbers of examples; None: all of them",
    "learner": "the Learner that asks",
    "loss": "how wrong answers count: None, or numbers for each truth and answer",
    "settings": "of the learner's pass",
    "saved": "arrays of a checkpoint",
    "header": "what a file says besides its arrays",
    "arrays": "the arrays of a file",
    "data": "encoded examples",
    "C": "weight of the loss",
    "weight": "a factor of what is added",
    "plane": "the sum that is being made",
    "make": "makes the weights that are blended",
    "out": "where the numbers go",
    "cached": "kept answers only, no new ones",
    "begin": "where each row begins",
    "averages": "the averaged weights",
    "estimator": "a fitted estimator",
    "parts": "pieces that are put together",
    "templates": "which columns of which tokens make features",
    "fit_intercept": "adds a column of ones",
    "classes": "the labels, in their order",
    "n_features": "columns of the rows",
    "n_labels": "how many labels there are",
    "pairwise": "which pairs of labels have weights",
    "batch_size": "answers found at the same weights before their updates",
    "oracle": "who answers, instead of the built-in oracles",
    "eval_every": "passes between two measurements of the gap",
    "checkpoint": "a file from which an interrupted run goes on",
    "checkpoint_interval": "seconds between two checkpoints",
    "solver": "how the problem is solved",
    "positive_weight": "weight of the positive examples' loss",
    "unit_rows": "rows are divided by their lengths",
    "scheduler": "threads, processes, or the address of a Dask scheduler",
    "prune": "drops weights that held-out rows do not need",
    "at": "how many of the best labels are counted",
    "threshold": "weights below it are dropped",
    "order": "the order in which labels are looked at",
    "max_components": "the most atoms",
    "inner": "how the inner problems are solved",
    "network": "the network, which is not changed",
    "epochs": "passes over the data",
    "batch": "rows a step",
    "inputs": "rows that enter the layer",
    "back": "the gradient that arrives at the layer's output",
    "file": "a model file of the comparison",
    "methods": "names of methods and peers",
    "missing": "peers that were asked for and are not installed",
    "repeat": "runs of each method on each model",
    "text": "what is said",
    "results": "a Result, or {name: Result}",
    "f": "number of a factor",
    "i": "number of a variable",
    "a": "label of the first variable",
    "b": "label of the second variable",
    "value": "the new number",
    "eta": "step of the multipliers",
    "table": "scores of the states: an array, Potts, AbsDiff, SqDiff, or a TableRef",
    "cards": "how many labels each variable has",
    "graph": "a FactorGraph",
    "model": "a model of the core",
    "Layer.truth": "the true labels, one for each variable of each item",
    "Layer.unaries": "scores of labels: (..., variables, labels), or (..., labels of all variables)",
    "Layer.tables": "scores of states: (..., tables, labels, labels), or (..., entries of all tables)",
    "Layer.weights": "one number per factor, where the structure knows its tables: (..., factors)",
    "Layer.keys": "a whole number for each item, by which the next call finds where to begin",
    "Layer.samples": "how many solves under noise are averaged",
    "Layer.sigma": "size of the noise",
    "Layer.noise": "the name of the distribution of the noise",
    "Layer.seed": "seed of the noise; None: other noise at each call",
    "Layer.strength": "how many times the loss's derivative the scores move for the second solve",
    "Answer.gradient": "the derivative of the loss with respect to the marginals, in their shape",
    "Structure.labels": "how many labels each variable has; in states_at labelings, one per row",
    "Structure.length": "how many variables the chain has",
    "Structure.shape": "the size of the grid along each axis",
    "Structure.shared": "whether all factors read one table; otherwise each has its own",
    "FactorGraph.variables": "{name: its labels, or how many it has}",
    "FactorGraph.arrays": "the arrays of a whole model",
    "literals": "pairs (variable, label), true if the variable has the label; a third entry False turns them round",
    "scores": "one score for each label",
    "variable": "number or name of a variable",
    "iterations": "how many more; None: no limit",
    "seconds": "how many more; None: no limit",
    "trace": "whether the result has its trace",
    "dual": "whether the result has marginals and messages",
    "unary": "one score for each variable and label",
    "client": "a dask.distributed.Client, or the address of a scheduler",
    "security": "a distributed.Security with the certificates of a cluster",
    "lam": "weight of the l1 penalty",
    "l1": "weight of the l1 penalty",
}
WORDS["GraphOracle.path"] = WORDS["UpdatableTable.path"] = WORDS["Ranking.path"] = WORDS["InnerProducts.path"] = (
    '"scan" and "search" force one way, "auto" takes the one that is faster at this size'
)


def parameters(f: Any) -> list[str]:
    """What a call takes by name, but for self and what begins with an underscore."""
    try:
        given = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in given if p.name not in ("self", "cls") and p.kind < 4 and not p.name.startswith("_")
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip


def word(owner: str, name: str) -> str | None:
    """The common meaning of a parameter."""
    return WORDS.get(f"{owner}.{name}", WORDS.get(name))


def fields(lines: list[str], names: list[str]) -> list[str]:
    """`name : text`, at the beginning of a line or after a sentence, becomes a field of its own."""
    if not names:
        return lines
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    start = re.compile(rf"(?:^|(?<=[.;)]) )((?:{known})(?:, (?:{known}))*) : ")
    out: list[str] = []
    inside = dashes = False
    for line in lines:
        text = line.strip()
        if text == "Parameters" or (dashes and set(text) == {"-"}):
            inside, dashes = False, text == "Parameters"
            continue
        dashes = False
        if not text:
            inside = False
        pieces = start.split(text)
        if len(pieces) > 1:
            if pieces[0].strip():
                out.append(("    " if inside else "") + pieces[0].strip())
            elif out and out[-1].strip() and not out[-1].startswith((":param", "    ")):
                out.append("")
            for said, what in zip(pieces[1::2], pieces[2::2], strict=True):
                *others, last = said.split(", ")
                out += [f":param {other}: see {last}" for other in others]
                out.append(f":param {last}: {what.strip().removesuffix(';')}")
            inside = True
        elif inside:
            out.append("    " + text)
        else:
            out.append(line)
    return out
