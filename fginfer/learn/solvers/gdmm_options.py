"""The options of gdmm and soft-bcfw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fginfer.errors import SettingsError


@dataclass(frozen=True)
class GdmmOptions:
    """rho: penalty on disagreement between a factor and its variables (0: begins with 1 / C and follows the residuals).
    eta: multiplier step, 1 is the classical one (None: 1, or 0.3 with afw, which moves less in a pass). soft-bcfw is
    eta = 0, an approximation that gets better and slower with rho, for comparisons only: with the best rho it is still
    behind gdmm (python -m bench learning_papers, figure2).
    block_C: a larger C is reached by proximal points whose subproblems have this one (0: chosen by the data).

    greedy (multilabel): labels a visit may add to an example's active set. partitions: unigram oracles look at one of
    so many parts of the labels, drawn at random (None: 4 for sequences with 1000 labels and more, else 1).
    search (tokens with labels, variant block): "scan" looks at all labels, "index" asks a search index over their
    weights, for thousands of labels with dense features (:mod:`fginfer.search`; certificates still scan); probes:
    clusters that it visits from the second pass on, None is exact, which gives the steps of the scan and seldom saves
    time, since weights in training are not clustered.
    brute_force: pairwise oracles scan their tables. joint (multilabel): how the best pair of labels is found, by
    "bounds" of the labels or in a "sorted" table. primal: "exact" measures the objective with the structured oracle,
    "relaxed" bounds it from above with factorwise ones, "auto" takes the exact one where that is cheap. batch_size
    (tokens with labels, variant block): unigram oracles of so many examples choose their labels at the same weights, on
    all threads. averaging (variant block; None: for tokens, not for label sets, where it was no gain): predict with the
    weighted average of the iterates unless the last one was measured to be better.

    variant: how the duals move. "block": factor by factor (Algorithm 4; multilabel: Algorithm 3), the fastest. "afw":
    all factors of block_size examples together, by Frank-Wolfe with away steps (Algorithm 2, for which the paper proves
    its rate; block_size = all examples is its global form, best with eta about 0.1).
    """

    rho: float = 0.0
    eta: float | None = None
    block_C: float = 0.0
    partitions: int | None = None
    search: str = "scan"
    probes: int | None = None
    brute_force: bool = False
    joint: str = "bounds"
    primal: str = "auto"
    greedy: int = 8
    batch_size: int = 1
    averaging: bool | None = None
    variant: str = "block"
    block_size: int = 1

    def __post_init__(self) -> None:
        if self.primal not in ("auto", "exact", "relaxed"):
            raise SettingsError(f"primal must be auto, exact or relaxed, not {self.primal!r}")
        if self.joint not in ("bounds", "sorted"):
            raise SettingsError(f"joint must be bounds or sorted, not {self.joint!r}")
        if self.variant not in ("block", "afw"):
            raise SettingsError(f"gdmm has the variants block and afw, not {self.variant!r}")
        if self.search not in ("scan", "index"):
            raise SettingsError(f"search must be scan or index, not {self.search!r}")
        if self.search == "index" and ((self.partitions or 1) > 1 or self.variant == "afw"):
            raise SettingsError("an index searches all labels: it goes with variant block, and not with partitions")
        if self.probes is not None and (self.search == "scan" or self.probes < 1):
            raise SettingsError(f"probes must be None, or at least 1 and go with search=index, not {self.probes!r}")
        if self.averaging and self.variant == "afw":
            raise SettingsError("averaging goes with the variant block")
        for name in ("block_size", "partitions", "greedy", "batch_size"):
            if (1 if getattr(self, name) is None else getattr(self, name)) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name, value in (("rho", self.rho), ("eta", self.step), ("block_C", self.block_C)):
            if not 0 <= value < np.inf:
                raise SettingsError(f"{name} must be a number, 0 or more, not {value!r}")

    @property
    def step(self) -> float:
        """eta, chosen where it was left open."""
        return self.eta if self.eta is not None else 0.3 if self.variant == "afw" else 1.0
