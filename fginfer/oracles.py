"""Oracles: the message-augmented argmax over the states of one factor, at a cost far below the number of states.

    argmax over y of  theta(y) - sum_k delta_k(y_k)

The engine's own solvers and learners ask this and nothing else; so can yours. theta comes from a *source*:

GraphOracle      the factors of a FactorGraph: dense tables of any arity, Potts, truncated differences
UpdatableTable   a pairwise table that changes at a few entries at a time, or in scale
Ranking          a vector that changes: one unary factor, or one value per binary factor (the joint oracle)
InnerProducts    labels scored by <w_k, x>: dense or sparse weights, all labels or one sampled part of them
RuleOracle       a constraint of a FactorGraph, whose scores an algorithm knows: no table, however many variables
SearchIndex      the same for many labels with dense rows that change, without looking at all of them, exact or
                 approximate; BackendIndex asks hnswlib or faiss (see :mod:`fginfer.search`)

Messages delta_k are sparse and signed: a dict {label: value} (labels that are not listed have 0), a pair of arrays
(labels ascending, values), or None. Answers are exact; ties go to the lowest state in the order of a C array (the last
variable fastest); the value is ((theta - delta_1) - delta_2) - ..., bit for bit what a dense scan computes. Sources are
live: an answer is about the numbers of the moment.

Single questions: ``source.argmax(...)``, and ``source.best(n, ...)`` for the n best states. Many at a time, without a
Python loop and shared by threads: ``source.ask(...)`` with messages in flat arrays (Messages). What it cost:
``source.work``. scores_argmax is the same question about scores at hand.
"""

from fginfer.search import BackendIndex, Found, SearchIndex
from fginfer.sources.answers import Answers, Argmax, Message, Messages
from fginfer.sources.products import InnerProducts
from fginfer.sources.rules import RuleOracle, Tally
from fginfer.sources.tables import GraphOracle, Ranking, Source, UpdatableTable, scores_argmax

__all__ = [
    "Answers",
    "Argmax",
    "BackendIndex",
    "Found",
    "GraphOracle",
    "InnerProducts",
    "Message",
    "Messages",
    "Ranking",
    "RuleOracle",
    "SearchIndex",
    "Source",
    "Tally",
    "UpdatableTable",
    "scores_argmax",
]
