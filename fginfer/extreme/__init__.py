"""Extreme classification: linear classifiers with very many labels, sparse in the primal and in the dual.

    from fginfer.extreme import ExtremeClassifier
    model = ExtremeClassifier().fit(X, y)              # X: sparse rows; y: classes, label lists or an indicator matrix
    labels, scores = model.predict_topk(X_new, k=5)
    model.save("model.fgx")                            # ExtremeClassifier.load maps it into memory

``solver="ppd-sparse"`` trains a label at a time, on threads, processes or a Dask cluster; ``"pd-sparse"`` all labels
together. Needs the extra ``learn`` (scikit-learn, joblib).
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:  # say what to do, and keep the cause
    raise ImportError('fginfer.extreme needs scikit-learn: pip install "fginfer[learn]"') from error

from fginfer.extreme.estimator import ExtremeClassifier
from fginfer.extreme.model import SparseModel
from fginfer.extreme.search import ExtremeClassifierCV
from fginfer.extreme.solvers import ExtremePoint

__all__ = ["ExtremeClassifier", "ExtremeClassifierCV", "ExtremePoint", "SparseModel"]
