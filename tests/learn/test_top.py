"""The best labels of multiclass models by search: those of decision_function."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.errors import FginferError
from fginfer.learn import StructuredSVM, TopLabels


def test_the_best_labels_are_those_of_the_decision_function() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 60
    X = rng.standard_normal((60, 8))[y] + 0.3 * rng.standard_normal((300, 8))
    model = StructuredSVM(model="multiclass", C=1.0, max_iter=5).fit(X, y)
    labels, scores = TopLabels(model, n_jobs=2)(X, 4)
    expected = np.sort(model.decision_function(X), axis=1)[:, ::-1][:, :4]
    assert np.allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert (labels[:, 0] == model.predict(X)).mean() > 0.99
    with pytest.raises(FginferError):
        TopLabels(model)(X, 61)
    with pytest.raises(FginferError, match="8 columns, as the model, not 3"):
        TopLabels(model)(X[:, :3], 2)
    with pytest.raises(FginferError, match="two dimensions"):
        TopLabels(model)(X[0], 2)
    with pytest.raises(FginferError, match="no coef_"):
        TopLabels(StructuredSVM(model="multiclass"))


def test_weights_kept_by_rows() -> None:
    rows = sp.csr_matrix(np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    model = SimpleNamespace(coef_=rows, intercept_=np.array([0.0, 0.5, -5.0]), classes_=np.array(["a", "b", "c"]))
    labels, scores = TopLabels(model)(sp.csr_matrix(np.ones((2, 3))), 2)
    assert labels.tolist() == [["b", "a"]] * 2
    assert scores.tolist() == [[2.5, 1.0]] * 2
