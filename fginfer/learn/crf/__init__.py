"""Conditional random fields with sparse weights: chains, graphs, taxonomies; trained by proximal quasi-Newton."""

from fginfer.learn.crf.base import CrfEstimator
from fginfer.learn.crf.crfsuite import read_crfsuite, write_crfsuite
from fginfer.learn.crf.estimators import ChainCRF, GraphCRF
from fginfer.learn.crf.hierarchy import HierarchicalCRF
from fginfer.learn.crf.path import CrfPath, crf_path

__all__ = [
    "ChainCRF",
    "CrfEstimator",
    "CrfPath",
    "GraphCRF",
    "HierarchicalCRF",
    "crf_path",
    "read_crfsuite",
    "write_crfsuite",
]
