"""Families of unseen.py: Bayesian networks and other models of relations."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from bench.common.whole_costs import LargeCase
from bench.map.unseen_family import Family, Rng, from_probabilities, table

# -- networks ---------------------------------------------------------------------------------------------------------


def dynamic(rng: Rng, case: LargeCase) -> None:
    width, slices, k = 12, 20, 2
    case.cards = [k] * (width * slices)
    parents = [sorted({w, *rng.permutation(width)[:2].tolist()}) for w in range(width)]
    tables = [rng.dirichlet([0.5] * k, size=(k,) * len(p)) for p in parents]
    for t, w in product(range(slices), range(width)):
        if t:
            case.add([*((t - 1) * width + p for p in parents[w]), t * width + w], from_probabilities(tables[w]))
        if rng.random() < 0.4:
            case.add([t * width + w], from_probabilities(rng.dirichlet([1.0] * k)))


def pedigree(rng: Rng, case: LargeCase) -> None:
    """Linkage: founders' alleles, who hands down which of two, with recombination from locus to locus."""
    people, loci, founders, alleles = 18, 5, 6, 4
    choose = np.zeros((alleles, alleles, 2, alleles))
    for a, b, s in product(range(alleles), range(alleles), range(2)):
        choose[a, b, s, (a, b)[s]] = 1
    kin = {p: rng.permutation(p)[:2].tolist() for p in range(founders, people)}
    selector: dict[tuple[int, int], int] = {}
    for locus in range(loci):
        at = {}
        for p, side in product(range(people), range(2)):
            at[p, side] = len(case.cards)
            case.cards.append(alleles)
            if p < founders:
                case.add([at[p, side]], from_probabilities(rng.dirichlet([1.0] * alleles)))
                continue
            case.cards.append(2)
            s, parent = len(case.cards) - 1, kin[p][side]
            case.add([at[parent, 0], at[parent, 1], s, at[p, side]], from_probabilities(choose))
            if locus:
                case.add([selector[p, side], s], from_probabilities([[0.9, 0.1], [0.1, 0.9]]))
            selector[p, side] = s
        for p in range(founders, people):
            if rng.random() < 0.6:  # typed: two alleles are seen, not which is whose; errors are rare
                seen = set(rng.integers(0, alleles, 2).tolist())
                table = [[0.97 if {a, b} == seen else 0.03 for b in range(alleles)] for a in range(alleles)]
                case.add([at[p, 0], at[p, 1]], from_probabilities(table))


def noisy_or(rng: Rng, case: LargeCase) -> None:
    """Diseases and findings, as in Promedas."""
    diseases, findings = 80, 70
    case.cards = [2] * diseases
    for d in range(diseases):
        rare = rng.uniform(0.001, 0.05)
        case.add([d], from_probabilities([1 - rare, rare]))
    for _ in range(findings):
        parents = rng.permutation(diseases)[: int(rng.integers(2, 8))]
        fails, leak = rng.uniform(0.05, 0.7, len(parents)), 0.999
        off = leak * np.array([np.prod(np.where(x, fails, 1.0)) for x in product((0, 1), repeat=len(parents))])
        seen = 1 - off if rng.random() < 0.6 else off
        case.add(parents, from_probabilities(seen.reshape((2,) * len(parents))))


def parity_check(rng: Rng, case: LargeCase) -> None:
    """A low-density code: bits received with noise, hard checks of six."""
    n = 120
    case.cards = [2] * n
    for i in range(n):
        level = rng.normal(1.0, 0.75)
        case.add([i], np.round([max(0, -1000 * level), max(0, 1000 * level)]))
    check = table((2,) * 6, lambda *x: sum(x) % 2 == 0)
    for order in (rng.permutation(n) for _ in range(3)):
        for group in order.reshape(-1, 6):
            case.add(group, check)


def circuit(rng: Rng, case: LargeCase) -> None:
    """Gates whose outputs are given: inputs with preferences (ISCAS)."""
    inputs, gates = 30, 250
    case.cards = [2] * (inputs + gates)
    kinds = [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: 1 - (a & b)]
    for i in range(inputs):
        case.add([i], rng.integers(0, 100, 2))
    for g in range(inputs, inputs + gates):
        gate = kinds[int(rng.integers(4))]
        a, b = rng.permutation(np.arange(max(0, g - 40), g))[:2].tolist()
        case.add([a, b, g], table((2, 2, 2), lambda x, y, z, gate=gate: z == gate(x, y)))
        if g >= inputs + gates - 12:
            case.add([g], rng.integers(0, 400, 2))


def relational(rng: Rng, case: LargeCase) -> None:
    """Friends and smokers (Alchemy): friendship is transitive and shares habits, at a price."""
    n = 12
    at = {pair: n + x for x, pair in enumerate(combinations(range(n), 2))}
    case.cards = [2] * (n + len(at))
    for v in range(len(case.cards)):
        case.add([v], rng.integers(0, 300, 2))
    for (i, j), f in at.items():
        case.add([i, j, f], 150 * np.array([x != y and z for x, y, z in product((0, 1), repeat=3)]).reshape(2, 2, 2))
    for i, j, k in combinations(range(n), 3):
        broken = np.array([sum(x) == 2 for x in product((0, 1), repeat=3)]).reshape(2, 2, 2)
        case.add([at[i, j], at[j, k], at[i, k]], 80 * broken)


def multicut(rng: Rng, case: LargeCase) -> None:
    n = 14
    at = {pair: x for x, pair in enumerate(combinations(range(n), 2))}
    case.cards = [2] * len(at)
    for v in range(len(at)):
        w = int(rng.integers(-100, 101))
        case.add([v], [max(0, w), max(0, -w)])
    cut = table((2, 2, 2), lambda *x: sum(x) != 1)
    for i, j, k in combinations(range(n), 3):
        case.add([at[i, j], at[j, k], at[i, k]], cut)


def haplotypes(rng: Rng, case: LargeCase) -> None:
    """Two rows of unknown letters, reads of several of them: each comes from one of both, with errors."""
    sites, reads = 60, 90
    true = rng.integers(0, 2, (2, sites))
    case.cards = [2] * (sites + reads)  # a site's phase, and which of both a read is from
    for r in range(reads):
        source, first = int(rng.integers(2)), int(rng.integers(sites - 6))
        for s in range(first, first + int(rng.integers(2, 7))):
            letter = true[source, s] if rng.random() < 0.85 else 1 - true[source, s]
            weight = int(rng.integers(1, 40))
            case.add([s, sites + r], weight * np.array([[letter == x ^ y for y in (0, 1)] for x in (0, 1)]))


FAMILIES: tuple[Family, ...] = (
    dynamic,
    pedigree,
    noisy_or,
    parity_check,
    circuit,
    relational,
    multicut,
    haplotypes,
)
