"""Structured learning: large-margin training and conditional random fields.

    from fginfer.learn import StructuredSVM
    model = StructuredSVM(model="chain", C=0.1).fit(X, y)      # X: list of (T_i, d) arrays, y: list of T_i labels
    model.predict(X_new)
    crf = ChainCRF(l1=1.0).fit(X, y)                           # also tokens as dicts of named features
    crf.predict_proba(X_new)

Needs the extra ``learn`` (scikit-learn, joblib).
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:  # say what to do, and keep the cause
    raise ImportError('fginfer.learn needs scikit-learn: pip install "fginfer[learn]"') from error

from fginfer.learn.crf import ChainCRF, CrfPath, GraphCRF, HierarchicalCRF, crf_path
from fginfer.learn.data.examples import Choices, Example
from fginfer.learn.data.features import WindowFeatures
from fginfer.learn.data.parsing import ArcFeatures
from fginfer.learn.data.readers import read_conll, read_conllu, read_svmlight
from fginfer.learn.embedding.classifier import EmbeddingClassifier
from fginfer.learn.embedding.skipgram import SkipGram
from fginfer.learn.estimator import StructuredSVM
from fginfer.learn.kernel import KernelStructuredSVM
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import chunk_f1, exact_match, micro_f1
from fginfer.learn.oracle import MapOracle, MatchingOracle, Oracle
from fginfer.learn.path import Path, path
from fginfer.learn.run.loop import LearnPoint
from fginfer.learn.sequences import PerToken, as_sequences, token_accuracy
from fginfer.learn.top import TopLabels

__all__ = [
    "ArcFeatures",
    "ChainCRF",
    "Choices",
    "CrfPath",
    "EmbeddingClassifier",
    "Example",
    "GraphCRF",
    "HierarchicalCRF",
    "KernelStructuredSVM",
    "LearnPoint",
    "Learner",
    "MapOracle",
    "MatchingOracle",
    "Oracle",
    "Path",
    "PerToken",
    "SkipGram",
    "StructuredSVM",
    "TopLabels",
    "WindowFeatures",
    "as_sequences",
    "chunk_f1",
    "crf_path",
    "exact_match",
    "micro_f1",
    "path",
    "read_conll",
    "read_conllu",
    "read_svmlight",
    "token_accuracy",
]
