"""What users may pass: lists and concatenations, candidates, weights, edge types; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.errors import DataError, FginferError, SettingsError
from fginfer.learn import Choices, Example, StructuredSVM
from fginfer.learn.data.encode import encode
from fginfer.learn.data.parsing import is_projective

from . import problems as P
from .test_solvers import optimum


def chains(rng, n=8, labels=3, features=3, **more):
    lengths = rng.integers(2, 5, n)
    return [rng.normal(size=(t, features)) for t in lengths], [rng.integers(0, labels, t) for t in lengths]


def graphs(rng, n=8, kind=""):
    X, y = [], []
    for t in rng.integers(2, 5, n):
        edges = [(a, b) for a in range(t) for b in range(a) if rng.random() < 0.7] or [(0, 1)]
        extra = {
            "": {}, "types": {"edge_types": rng.integers(0, 3, len(edges))},
            "features": {"edge_features": rng.normal(size=(len(edges), 2))},
        }[kind]  # fmt: skip
        X.append(Example(rng.normal(size=(t, 3)), edges=edges, weight=rng.random(t), **extra))
        y.append(rng.integers(0, 3, t))
    return X, y


def concatenated(X):
    """Examples one after the other in one, and their offsets."""
    begin = np.cumsum([0, *(len(e.features) for e in X)])

    def joined(name):
        return None if getattr(X[0], name) is None else np.concatenate([getattr(e, name) for e in X])

    edges = None
    if X[0].edges is not None:
        edges = np.concatenate([np.asarray(e.edges) + b for e, b in zip(X, begin, strict=False)])
    candidates = None if X[0].candidates is None else [c for e in X for c in e.candidates]
    whole = Example(
        np.concatenate([e.features for e in X]), edges, joined("edge_types"), joined("edge_features"), candidates,
        joined("weight"),
    )  # fmt: skip
    return whole, begin


@pytest.mark.parametrize("kind", ["", "types", "features"])
def test_graphs_in_one_piece_are_the_same_graphs(kind):
    X, y = graphs(np.random.default_rng(0), kind=kind)
    whole, offsets = concatenated(X)
    order = np.random.default_rng(1).permutation(len(whole.edges))  # edges may come in any order
    parts = (None if p is None else p[order] for p in (whole.edges, whole.edge_types, whole.edge_features))
    mixed = Example(whole.features, *parts, weight=whole.weight)
    listed = StructuredSVM(model="graph", solver="gdmm", max_iter=20, tol=0).fit(X, y)
    joined = StructuredSVM(model="graph", solver="gdmm", max_iter=20, tol=0).fit(whole, np.concatenate(y), offsets)
    assert np.array_equal(listed.weights_, joined.weights_)
    shuffled = StructuredSVM(model="graph", solver="gdmm", max_iter=20, tol=0).fit(mixed, np.concatenate(y), offsets)
    assert shuffled.weights_.shape == listed.weights_.shape
    assert np.array_equal(np.concatenate(listed.predict(X)), joined.predict(whole, offsets))
    assert listed.score(X, y) == joined.score(whole, np.concatenate(y), offsets)


def test_chains_have_edge_types_and_features_too():
    rng = np.random.default_rng(2)
    features, y = chains(rng)
    typed = [Example(x, edge_types=rng.integers(0, 2, len(x) - 1)) for x in features]
    with_features = [Example(e.features, edge_features=np.eye(2)[np.asarray(e.edge_types)]) for e in typed]
    as_graph = [
        Example(e.features, edges=[(t, t + 1) for t in range(len(e.features) - 1)], edge_types=e.edge_types)
        for e in typed
    ]
    models = [StructuredSVM(C=0.3, tol=0, max_iter=10).fit(X, y) for X in (typed, with_features)]
    graph = StructuredSVM(model="graph", C=0.3, tol=1e-5, max_iter=500).fit(as_graph, y)
    chain = StructuredSVM(C=0.3, tol=1e-5, max_iter=500).fit(typed, y)
    assert models[0].pairwise_.shape == (2, 3, 3)
    assert np.array_equal(models[0].weights_, models[1].weights_)
    assert chain.primal_ == pytest.approx(graph.primal_, rel=2e-5)
    whole, offsets = concatenated(typed)
    again = StructuredSVM(C=0.3, tol=0, max_iter=10).fit(whole, np.concatenate(y), offsets)
    assert np.array_equal(again.weights_, models[0].weights_)
    with pytest.raises(DataError, match="example 0"):
        chain.predict(features)
    with pytest.raises(DataError, match="example 0"):
        chain.predict(with_features)


def test_candidates_in_every_model_of_tokens_and_with_every_solver():
    rng = np.random.default_rng(3)
    features, y = chains(rng, n=6, labels=4)
    lists = [[sorted({int(z), *rng.integers(0, 5, 2).tolist()}) for z in part] for part in y]
    X = [Example(x, candidates=c) for x, c in zip(features, lists, strict=True)]
    edges = [[(t, t + 1) for t in range(len(x) - 1)] for x in features]
    G = [Example(x, edges=e, candidates=c) for x, e, c in zip(features, edges, lists, strict=True)]
    whole, offsets = concatenated(X)
    flat = [c for part in lists for c in part]
    rows = Example(np.concatenate(features), candidates=flat)
    for solver in ("bcfw", "gdmm", "fw", "cutting-plane", "ssg", "dcd", "perceptron", "mira", "soft-bcfw"):
        for model, data, labels in (("chain", X, y), ("graph", G, y), ("multiclass", rows, np.concatenate(y))):
            svm = StructuredSVM(model=model, solver=solver, C=0.5, max_iter=8).fit(data, labels)
            answers = svm.predict(data)
            answers = answers if model == "multiclass" else np.concatenate(answers)
            assert all(a in c for a, c in zip(answers, flat, strict=True)), (solver, model)
            assert len(svm.classes_) == 5  # 4 is only ever a candidate
    joined = StructuredSVM(C=0.5, max_iter=8).fit(whole, np.concatenate(y), offsets)
    assert np.array_equal(joined.weights_, StructuredSVM(C=0.5, max_iter=8).fit(X, y).weights_)
    # what is true but no candidate is an error in training, and a mistake when it comes to scores
    wrong = [Example(e.features, candidates=[[(int(z) + 1) % 4] for z in part]) for e, part in zip(X, y, strict=True)]
    with pytest.raises(DataError, match=r"example 0, token 0: the true label .* not among the candidates"):
        StructuredSVM().fit(wrong, y)
    assert joined.score(wrong, y) == 0.0


def loss_of_answers(model, data, labels, C=0.7):
    """(measured primal, primal by enumeration) of a short run."""
    svm = StructuredSVM(model=model, C=C, max_iter=5, tol=0).fit(data, labels)
    encoded, _ = encode(model, data, labels, pairwise=True)
    w = svm.weights_
    hinges = [max(loss - psi @ w) for psi, loss in P.planes(encoded)]
    return svm.primal_, 0.5 * w @ w + C * sum(hinges), encoded


def test_weights_of_tokens_reach_every_model():
    rng = np.random.default_rng(4)
    features, y = chains(rng, n=4)
    weights = [rng.random(len(x)) * 3 for x in features]
    X = [Example(x, weight=w) for x, w in zip(features, weights, strict=True)]
    for model, data, labels in (
        ("chain", X, y),
        ("graph", [Example(e.features, edges=[(0, 1)], weight=e.weight) for e in X], y),
        ("multiclass", Example(np.concatenate(features), weight=np.concatenate(weights)), np.concatenate(y)),
    ):
        measured, enumerated, encoded = loss_of_answers(model, data, labels)
        assert np.array_equal(encoded.token_weight, np.concatenate(weights))
        assert measured == pytest.approx(enumerated)
    table, sets, weight = rng.normal(size=(6, 3)), rng.integers(0, 2, (6, 3)), rng.random(6) * 2
    best = optimum(encode("multilabel", Example(table, weight=weight), sets, pairwise=False)[0], 0.5, squared=False)
    for solver in ("bcfw", "gdmm", "cutting-plane"):
        settings = {"model": "multilabel", "solver": solver, "pairwise": False, "tol": 1e-5, "max_iter": 2000}
        svm = StructuredSVM(C=0.5, **settings).fit(Example(table, weight=weight), sets)
        assert svm.primal_ == pytest.approx(best, rel=2e-5), solver


def test_weights_of_choices():
    rng = np.random.default_rng(4)
    rows = [rng.normal(size=(5, 3)) for _ in range(6)]
    choices = [Choices(x, [2, 3], weight=[2.0, 0.5]) for x in rows]
    chosen = [[rng.integers(0, 2), rng.integers(0, 3)] for _ in rows]
    svm = StructuredSVM(model="choices", max_iter=5, tol=0).fit(choices, chosen)
    answers, hinges = svm.loss_augmented_decode(choices, chosen)
    for x, z, a, h in zip(rows, chosen, answers, hinges, strict=True):
        cut = np.split(x @ svm.weights_, [2])
        best = [
            max(s[c] + w * (c != t) for c in range(len(s))) - s[t] for s, w, t in zip(cut, (2.0, 0.5), z, strict=True)
        ]
        assert h == pytest.approx(sum(best))
        assert len(a) == 2


def test_choices_in_one_piece():
    rng = np.random.default_rng(5)
    X = [Choices(rng.normal(size=(5, 3)), [2, 3]) for _ in range(6)]
    y = [np.array([rng.integers(0, 2), rng.integers(0, 3)]) for _ in X]
    whole = Choices(np.concatenate([x.rows for x in X]), [2, 3] * 6)
    offsets = np.arange(7) * 2
    listed = StructuredSVM(model="choices", max_iter=5).fit(X, y)
    joined = StructuredSVM(model="choices", max_iter=5).fit(whole, np.concatenate(y), offsets)
    assert np.array_equal(listed.weights_, joined.weights_)
    assert np.array_equal(np.concatenate(listed.predict(X)), joined.predict(whole, offsets))
    assert [len(s) for s in listed.decision_function(X)] == [5] * 6
    assert joined.decision_function(whole, offsets).shape == (30,)


def test_tables_and_cubes():
    rng = np.random.default_rng(6)
    cube, labels = rng.normal(size=(6, 4, 3)), rng.integers(0, 3, (6, 4))
    model = StructuredSVM(max_iter=5).fit(cube, labels)
    assert np.array_equal(model.weights_, StructuredSVM(max_iter=5).fit(list(cube), list(labels)).weights_)
    assert [len(a) for a in model.predict(cube)] == [4] * 6
    ragged = np.empty(2, object)
    ragged[:] = [rng.normal(size=(2, 3)), rng.normal(size=(3, 3))]
    assert [len(a) for a in model.predict(ragged)] == [2, 3]
    with pytest.warns(UserWarning, match="every row is a sequence of its own"):
        StructuredSVM(max_iter=5).fit(cube[0], labels[0])


def test_sparse_features_with_repeated_entries_mean_their_sum():
    twice = sp.csr_matrix((np.ones(6), [0, 0, 1, 2, 2, 0], [0, 2, 3, 6]), shape=(3, 3))
    assert not twice.has_canonical_format
    fits = [
        StructuredSVM(model="multiclass", solver=solver, tol=1e-6, max_iter=500).fit(X, [0, 1, 2])
        for X in (twice, twice.toarray())
        for solver in ("bcfw", "gdmm")
    ]
    for model in fits:
        assert model.gap_ <= 1e-6
        assert model.primal_ == pytest.approx(fits[0].primal_, rel=1e-5)
    assert twice.nnz == 6


LABELS = {
    "mixed": ([[1, 2], ["a", "b"]], "names or all numbers"),
    "mixed_in_one": ([[1, "a"], [1, 2]], "not both"),
    "none": ([[None, 1], [1, 2]], "None"),
    "fraction": ([[0.5, 1], [1, 2]], "whole number"),
    "nan": ([[np.nan, 1.0], [1, 2]], "NaN"),
    "nested": ([[[1], [2]], [1, 2]], "shape"),
    "ragged": ([[[1, 2], 2], [1, 2]], "ragged"),
    "scalar": (3, "int"),
    "text": ("ab", "str"),
    "dates": ([np.array(["2020-01-01"] * 2, "datetime64[D]")] * 2, "datetime64"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_are_no_labels(case):
    y, message = LABELS[case]
    with pytest.raises(DataError, match=message):
        StructuredSVM().fit([np.eye(2), np.eye(2)], y)


SETS = {
    "one_label": ([0, 1, 2], "collection"),
    "flat": (np.array([0, 1, 2]), "shape"),
    "text": (["ab", "c", "d"], "collection"),
    "counts": (np.array([[2, 0], [0, 1], [1, 1]]), "zeros and ones"),
    "nan": (np.array([[np.nan, 0], [0, 1], [1, 1]]), "zeros and ones"),
    "mixed": ([["a"], [1], []], "names or all numbers"),
    "nothing": ([[], [], []], "no example has a label"),
    "columns": (np.zeros((3, 0)), "no columns"),
    "rows": (np.zeros((2, 2)), "3 examples, y has 2"),
}


@pytest.mark.parametrize("case", SETS)
def test_label_sets_that_are_none(case):
    y, message = SETS[case]
    with pytest.raises(DataError, match=message):
        StructuredSVM(model="multilabel").fit(np.eye(3), y)


def test_label_sets_come_back_as_they_were_given():
    X, rng = np.random.default_rng(7).normal(size=(12, 3)), np.random.default_rng(8)
    matrix = rng.integers(0, 2, (12, 3))
    lists = [np.flatnonzero(row).tolist() for row in matrix]
    settings = {"model": "multilabel", "pairwise": False, "max_iter": 5}
    by_matrix, by_lists, by_rows, by_sparse = (
        StructuredSVM(**settings).fit(X, y) for y in (matrix, lists, matrix.tolist(), sp.csr_matrix(matrix))
    )
    assert by_matrix.predict(X).shape == by_rows.predict(X).shape == by_sparse.predict(X).shape == (12, 3)
    for row, labels in zip(by_matrix.predict(X), by_lists.predict(X), strict=True):
        assert np.array_equal(np.flatnonzero(row), labels)
    assert by_matrix.score(X, matrix) == by_lists.score(X, lists)
    with pytest.raises(DataError, match="columns"):
        by_matrix.score(X, matrix[:, :2])
    with pytest.raises(DataError, match="label 7"):
        by_lists.score(X, [[7]] * 12)


def refuse(match, X, y, offsets=None, **settings):
    with pytest.raises((DataError, SettingsError), match=match):
        StructuredSVM(callback=lambda p: pytest.fail("training started"), **settings).fit(X, y, offsets)


def test_bad_offsets():
    X, y = np.eye(4), [0, 1, 0, 1]
    for offsets, match in (
        ([0, 3, 2, 4], "increase"), ([0, 2, 2, 4], "example 1 is empty"), ([0, 2], "from 0 to"), ([1, 4], "from 0"),
        ([0, 2.5, 4], "whole"), (["a", "b"], "whole"), ([[0, 4]], "list"), ([4], "two"), (7, "two"),
    ):  # fmt: skip
        refuse(match, X, y, offsets)
    refuse("offsets belong", X, y, [0, 4], model="multiclass")
    with pytest.raises(ValueError, match="inconsistent"):
        StructuredSVM().fit(X, y[:3], [0, 2, 4])


def test_bad_edges():
    x = np.eye(3)
    for more, match in (
        ({"edges": [(0, 3)]}, r"edge \(0, 3\)"), ({"edges": [(1, 1)]}, "different"), ({"edges": [(-1, 1)]}, "edge"),
        ({"edges": [(0.0, 1.0)]}, "token numbers"), ({"edges": [0, 1]}, "token numbers"),
        ({"edges": [(0, 1)], "edge_types": [0.5]}, "edge type"), ({"edges": [(0, 1)], "edge_types": [-1]}, "edge type"),
        ({"edges": [(0, 1)], "edge_types": [0, 1]}, "1 edges"),
        ({"edges": [(0, 1)], "edge_features": np.ones((2, 2))}, "rows of edge features"),
        ({"edges": [(0, 1)], "edge_features": [[np.nan]]}, "NaN"),
        ({"edges": [(0, 1)], "edge_features": [[1.0]], "edge_types": [0]}, "not both"),
        ({"candidates": [[0], [1]]}, "candidate lists"), ({"candidates": [[0, 1], [], [1]]}, "token 1 has no"),
        ({"candidates": [[0, 1], 1, [1]]}, "collection"), ({"candidates": [[0], ["a"], [0]]}, "names or all numbers"),
        ({"weight": [1, 1]}, "weights"), ({"weight": [1, -1, 1]}, "weights"), ({"weight": [1, np.inf, 1]}, "weights"),
        ({"weight": ["a", "b", "c"]}, "weights"),
    ):  # fmt: skip
        refuse(match, [Example(x, **more)], [[0, 1, 0]], model="graph")
        if "edges" not in more:
            refuse(match, [Example(x, **more)], [[0, 1, 0]])
    two = [Example(x, edges=[(0, 1)], edge_types=[1]), Example(x, edges=[(0, 1)])]
    refuse("example 1: its edges have no types", two, [[0, 1, 0]] * 2, model="graph")
    wide = [Example(x, edges=[(0, 1)], edge_features=np.ones((1, k))) for k in (1, 2)]
    refuse("1 features, beyond the 2", wide, [[0, 1, 0]] * 2, model="graph")
    refuse("joins two examples", Example(np.eye(4), edges=[(1, 2)]), [0, 1, 0, 1], [0, 2, 4], model="graph")
    refuse("edge types", Example(np.eye(4), edges=[(0, 1)], edge_types=[0, 1]), [0, 1, 0, 1], [0, 2, 4], model="graph")
    refuse("only graphs", [Example(x, edges=[(0, 1)])], [[0, 1, 0]])
    refuse("list of Example", Example(x, edges=[(0, 1)]), [0, 1, 2], model="graph")
    refuse("only chains and graphs", Example(x, edge_types=[0, 0, 0]), [0, 1, 2], model="multiclass")
    refuse("candidate lists belong", Example(x, candidates=[[0]] * 3), np.eye(3), model="multilabel")


def test_graphs_without_edges_and_types_only_where_there_are_edges():
    rng = np.random.default_rng(9)
    X = [Example(rng.normal(size=(2, 2)), edges=[(0, 1)], edge_types=[t]) for t in (0, 1)] + [Example(np.eye(2))]
    y = [[0, 1], [1, 0], [0, 1]]
    model = StructuredSVM(model="graph", max_iter=5).fit(X, y)
    assert model.pairwise_.shape == (2, 2, 2)
    with pytest.raises(DataError, match="no types"):
        model.predict([Example(np.eye(2), edges=[(0, 1)])])
    plain = StructuredSVM(model="graph", max_iter=5, pairwise=False).fit(X, y)
    assert plain.pairwise_.shape == (0, 2, 2)
    plain.predict([Example(np.eye(2), edges=[(0, 1)])])


@pytest.mark.parametrize("model", ["choices", "matching", "parse"])
def test_a_loss_matrix_is_not_passed_over_in_silence(model):
    with pytest.raises(SettingsError, match="loss matrix belongs"):
        StructuredSVM(model=model, loss=[[0, 1], [1, 0]]).fit(np.eye(2), np.eye(2))


def test_bad_loss_matrices():
    X, y = [np.eye(3)], [[0, 1, 2]]
    for loss in (
        np.ones((2, 2)),
        -np.ones((3, 3)) + np.eye(3),
        np.full((3, 3), np.nan),
        "abc",
        [[0, 1], [1]],
        np.zeros(3),
    ):
        refuse("loss matrix", X, y, loss=loss)


def test_losses_of_label_sets():
    X, Y = np.eye(3), np.array([[1, 0], [1, 1], [0, 1]])
    for loss in (np.ones((3, 2)), [1.0], [1, -1], [np.inf, 1], "ab", np.ones((2, 3))):
        refuse("loss", X, Y, model="multilabel", loss=loss)
    once, each = (
        StructuredSVM(model="multilabel", loss=loss, random_state=0).fit(X, Y) for loss in ((3, 1), [(3, 1), (3, 1)])
    )
    assert np.array_equal(once.weights_, each.weights_)


def test_projective_trees():
    for n in range(1, 6):
        found = {tuple(heads) for heads in np.ndindex(*(n + 1,) * n) if is_projective(heads)}
        assert found == {tuple(int(h) for h in heads) for heads in P.trees(n)}
    rows = np.ones((12, 2))
    for heads in ([2, 1, 0], [0, 0, 1], [3, 0, 9]):
        with pytest.raises(FginferError, match=r"example 0.*(tree|alternatives)"):
            StructuredSVM(model="parse").fit([Choices(rows, [4] * 3)], [heads])
    with pytest.raises(DataError, match=r"n \+ 1"):
        StructuredSVM(model="parse").fit([Choices(rows, [6, 6])], [[0, 1]])
