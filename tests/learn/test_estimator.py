"""The scikit-learn estimators: its checks, copies, files, resumed runs, limits, bad input."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from fginfer.errors import DataError, FginferError, FormatError, SettingsError
from fginfer.learn import Choices, Example, KernelStructuredSVM, StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.run.loop import Limits, SoFar, drive
from fginfer.learn.run.trainer import Measured, Trainer

BOTH = pytest.mark.parametrize("Estimator", [StructuredSVM, KernelStructuredSVM])

# Checks of scikit-learn that the estimators do not take, with the reason. Graphs and choices are not tables, so that
# none of the checks can be run on them; for label sets see below.
_TO_TOLERANCE = "compares to 1e-7 what is trained to `tol`; test_weights.py compares with copies at a small one"
EXCLUDED: dict[str, str] = {
    "check_sample_weight_equivalence_on_dense_data": _TO_TOLERANCE,
    "check_sample_weight_equivalence_on_sparse_data": _TO_TOLERANCE,
}


# Weights of 1000 and 0.0001: in chains they weigh losses, not whole hinges, which leaves the scores to be pushed apart;
# and gdmm, whose steps fit the average example, does not converge in 1000 passes (and says so).
EXTREME = {"check_class_weight_classifiers": "a ratio of 1e7 between classes"}


def words(n=30, seed=0, labels=("noun", "verb", "det")):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(n)]
    W = np.random.default_rng(99).normal(size=(4, len(labels)))
    return X, [np.array(labels)[np.argmax(x @ W, axis=1)] for x in X]


class OfRows:
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        return tags


class RowsSVM(OfRows, StructuredSVM):
    pass


class RowsKernelSVM(OfRows, KernelStructuredSVM):
    pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # a table without offsets; checks that need pandas
@pytest.mark.parametrize(
    "settings", [{}, {"model": "multiclass"}, {"model": "multiclass", "solver": "gdmm"}], ids=["chain", "bcfw", "gdmm"]
)
@BOTH
def test_scikit_learn_checks(settings, Estimator):
    """Chains are no classifiers of rows to scikit-learn, but pass its checks of these when every row is a chain."""
    excluded = EXCLUDED if settings == {"model": "multiclass"} else {**EXCLUDED, **EXTREME}

    if not settings:
        assert not is_classifier(Estimator())
        Estimator = {StructuredSVM: RowsSVM, KernelStructuredSVM: RowsKernelSVM}[Estimator]
    check_estimator(Estimator(max_iter=200, **settings), expected_failed_checks=excluded)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("Estimator", "solver"), [(StructuredSVM, "bcfw"), (StructuredSVM, "gdmm"), (KernelStructuredSVM, "bcfw")]
)
def test_scikit_learn_checks_of_label_sets(Estimator, solver):
    """Only those fail that hand `fit` one label an example, which is no label set, or weights that label sets (with
    interactions) do not take; the others all pass."""
    refused = ("label sets are a matrix", "class_weight belongs to", "sample_weight needs pairwise=False")
    model = Estimator(model="multilabel", solver=solver, max_iter=200)
    results = check_estimator(model, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    for name, error in failed.items():
        chain = [error]
        while chain[-1].__cause__ is not None or chain[-1].__context__ is not None:
            chain.append(chain[-1].__cause__ or chain[-1].__context__)
        assert any(text in str(e) for e in chain for text in refused), name
    assert {r["check_name"] for r in results if "multilabel" in r["check_name"]}.isdisjoint(failed)
    assert "check_classifier_multioutput" not in failed


def test_chain_learns_and_predicts_in_the_form_it_was_given():
    X, y = words()
    model = StructuredSVM(C=1.0, max_iter=300).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.gap_ <= 1e-3
    assert model.dual_ <= model.primal_
    predicted = model.predict(X)
    assert [len(p) for p in predicted] == [len(x) for x in X]
    assert set(np.concatenate(predicted)) <= {"noun", "verb", "det"}
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    flat = StructuredSVM(C=1.0, max_iter=300).fit(np.vstack(X), np.concatenate(y), offsets=offsets)
    assert np.array_equal(flat.weights_, model.weights_)
    assert np.array_equal(flat.predict(np.vstack(X), offsets=offsets), np.concatenate(predicted))
    sparse = StructuredSVM(C=1.0, max_iter=300).fit([sp.csr_matrix(x) for x in X], y)
    assert np.array_equal(sparse.weights_, model.weights_)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.pairwise_.shape == (1, 3, 3)


def test_multilabel_takes_matrices_and_lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    matrix = (X @ rng.normal(size=(5, 4)) > 0.5).astype(int)
    model = StructuredSVM(model="multilabel", pairwise=False, C=10.0).fit(X, matrix)
    assert model.predict(X).shape == matrix.shape
    assert np.mean(model.predict(X) == matrix) > 0.97
    names = np.array(["a", "b", "c", "d"])
    listed = StructuredSVM(model="multilabel", pairwise=False, C=10.0).fit(X, [list(names[row > 0]) for row in matrix])
    assert np.array_equal(listed.weights_, model.weights_)
    assert set(listed.predict(X)[0]) == set(names[model.predict(X)[0] > 0])
    assert listed.score(X, [list(names[row > 0]) for row in matrix]) == model.score(X, matrix)


def test_graphs_with_edge_types_and_candidates():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        edges = [(1, 0), (1, 2), (2, 3)]
        X.append(Example(rng.normal(size=(4, 3)), edges=edges, edge_types=[0, 1, 0]))
        y.append(rng.integers(0, 3, 4))
    model = StructuredSVM(model="graph", C=1.0).fit(X, y)
    assert model.pairwise_.shape == (2, 3, 3)
    restricted = [
        Example(e.features, e.edges, e.edge_types, candidates=[[int(t)] for t in z]) for e, z in zip(X, y, strict=True)
    ]
    assert model.score(restricted, y) == 1.0
    with pytest.raises(DataError, match="beyond the 2"):
        model.predict([Example(np.zeros((2, 3)), edges=[(0, 1)], edge_types=[5])])


def test_user_weighted_losses_change_the_objective():
    X, y = words()
    costs = np.array([[0, 1, 5], [1, 0, 5], [1, 1, 0]])
    model = StructuredSVM(C=0.1, loss=costs, tol=1e-5).fit(X, y)
    answers, hinges = model.loss_augmented_decode(X, y)
    assert len(answers) == len(X)
    primal = 0.5 * model.weights_ @ model.weights_ + 0.1 * hinges.sum()
    assert primal == pytest.approx(model.primal_)
    with pytest.raises(DataError, match="diagonal"):
        StructuredSVM(loss=np.ones((3, 3))).fit(X, y)


@BOTH
def test_copies_files_and_cross_validation(tmp_path, Estimator):
    X, y = words()
    model = Estimator(C=0.5, solver="bcfw", random_state=np.int64(3), fit_intercept=np.False_).fit(X, y)
    again = clone(model).fit(X, y)
    assert np.array_equal(again.weights_, model.weights_)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).weights_, model.weights_)
    model.save(tmp_path / "m.npz")
    loaded = Estimator.load(tmp_path / "m.npz")
    plain = {k: v for k, v in model.get_params().items() if k != "loss"}
    assert {k: v for k, v in loaded.get_params().items() if k != "loss"} == plain
    assert all(np.array_equal(a, b) for a, b in zip(loaded.predict(X), model.predict(X), strict=True))
    assert np.array_equal(np.vstack(loaded.decision_function(X)), np.vstack(model.decision_function(X)))
    assert (loaded.primal_, loaded.dual_, loaded.gap_) == (model.primal_, model.dual_, model.gap_)
    with joblib.parallel_config("threading"):  # test_parallel.py has processes
        scores = [cross_val_score(Estimator(C=1.0, max_iter=20), X, y, cv=3, n_jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(*scores)


@BOTH
def test_model_files_never_run_code(tmp_path, Estimator):
    path = tmp_path / "bad.npz"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FormatError):
        Estimator.load(path)
    np.savez(path, header=np.array([{"x": 1}], object))
    with pytest.raises(FormatError):
        Estimator.load(path)
    np.save(tmp_path / "bad.npy", np.zeros(3))
    for other in ("bad.npy", "absent.npz", "."):
        with pytest.raises(FormatError):
            Estimator.load(tmp_path / other)


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    model = StructuredSVM(max_iter=2).fit(*words(5))
    path = tmp_path / "m.npz"
    (tmp_path / "other").write_text("")
    model.save(path)
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode  # others may read it, as the umask says
    before = path.read_bytes()
    monkeypatch.setattr("fginfer.learn.files.storage.write_arrays", lambda file, _: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz", "other"]


@BOTH
def test_damaged_model_files(tmp_path, Estimator):
    X, y = words()
    Estimator(max_iter=3, loss=1 - np.eye(3), C=np.float32(0.5)).fit(X, y).save(tmp_path / "good.npz")
    header, arrays = storage.read(tmp_path / "good.npz")
    assert Estimator.load(tmp_path / "good.npz").C == 0.5
    path = tmp_path / "bad.npz"
    whole = (tmp_path / "good.npz").read_bytes()
    for size in (0, 3, 4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"bad\.npz"):
            Estimator.load(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    path.write_bytes(flipped)
    with pytest.raises(FormatError):
        Estimator.load(path)
    for name, value in (
        ("weights", arrays["weights"][:-1]), ("weights", arrays["weights"].astype(np.float32)),
        ("weights", arrays["weights"] * np.nan), ("classes", arrays["classes"][::-1]), ("classes", np.arange(4)),
        ("loss", np.ones((3, 3))), ("n_features_in", 3), ("n_features_in", -4), ("n_features_in", "4"),
        ("n_edge_features", 0), ("n_edge_features", 2), ("edge_kind", "x"), ("label_lists", None), ("parameters", 7),
        ("parameters", {"C": -1}), ("parameters", {"model": "lattice"}), ("parameters", {"model": "parse"}),
        ("kind", "other"),
    ):  # fmt: skip
        new = ({**header, name: value}, arrays) if name in header else (header, {**arrays, name: value})
        storage.write(path, *new)
        with pytest.raises(FormatError, match=r"bad\.npz"):
            Estimator.load(path)
    for name in (*header, *arrays):
        if name in ("fginfer_model", "loss"):
            continue
        storage.write(path, *({k: v for k, v in part.items() if k != name} for part in (header, arrays)))
        with pytest.raises(FormatError, match=r"bad\.npz"):
            Estimator.load(path)


TABLES = ("chain", "graph", "multilabel", "multiclass")


@pytest.mark.parametrize(
    ("Estimator", "model"),
    [*((StructuredSVM, m) for m in (*TABLES, "choices")), *((KernelStructuredSVM, m) for m in TABLES)],
)
def test_saved_models_predict_the_same(tmp_path, model, Estimator):
    rng = np.random.default_rng(0)
    X, y = {
        "chain": lambda: words(8),
        "graph": lambda: (
            [Example(rng.normal(size=(3, 2)), edges=[(0, 1), (2, 1)], edge_types=[0, 1]) for _ in range(8)],
            [rng.integers(0, 3, 3) for _ in range(8)],
        ),
        "multilabel": lambda: (rng.normal(size=(8, 3)), [[1, 2], [0], [], [2], [0, 1], [1], [2, 0], [0]]),
        "multiclass": lambda: (rng.normal(size=(8, 3)), np.array(["a", "b"] * 4, object)),
        "choices": lambda: (
            [Choices(rng.normal(size=(5, 2)), [2, 3]) for _ in range(8)],
            [[rng.integers(2), rng.integers(3)] for _ in range(8)],
        ),
    }[model]()
    fitted = Estimator(model=model, max_iter=5).fit(X, y)
    fitted.save(tmp_path / "m.npz")
    loaded = Estimator.load(tmp_path / "m.npz")
    for again in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert repr(again.predict(X)) == repr(fitted.predict(X))
        assert again.score(X, y) == fitted.score(X, y)
        assert repr(again.decision_function(X)) == repr(fitted.decision_function(X))
        assert np.array_equal(again.weights_, fitted.weights_)
    assert loaded.get_params() == fitted.get_params()


RUNS = [(StructuredSVM, name) for name in ("bcfw", "dcd", "perceptron", "mira", "ssg", "fw", "cutting-plane", "gdmm")]


@pytest.mark.parametrize(("Estimator", "solver"), [*RUNS, (KernelStructuredSVM, "bcfw"), (KernelStructuredSVM, "gdmm")])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path, Estimator, solver):
    X, y = words()
    settings = {"solver": solver, "C": 0.2, "tol": 0.0}
    whole = Estimator(**settings, max_iter=8).fit(X, y)
    path = tmp_path / "check.npz"
    Estimator(**settings, max_iter=3, checkpoint=path).fit(X, y)
    for _ in range(2):  # the second finds nothing left to do
        resumed = Estimator(**settings, max_iter=8, checkpoint=path).fit(X, y)
        assert np.array_equal(resumed.weights_, whole.weights_)
        assert resumed.n_iter_ == whole.n_iter_ == 8
        assert (resumed.primal_, resumed.dual_, resumed.gap_) == (whole.primal_, whole.dual_, whole.gap_)
        assert resumed.trace_[-1].oracle_calls == whole.trace_[-1].oracle_calls
    warm = Estimator(**settings, max_iter=4, warm_start=True).fit(X, y)
    warm = pickle.loads(pickle.dumps(warm)).fit(X, y)
    assert np.array_equal(warm.weights_, whole.weights_)
    with pytest.raises(SettingsError, match="other data or settings"):
        Estimator(**settings | {"C": 0.3}, checkpoint=path).fit(X, y)


@BOTH
def test_a_converged_run_is_not_trained_on(tmp_path, Estimator):
    X, y = words()
    path = tmp_path / "check.npz"
    ends = [Estimator(C=0.2, checkpoint=path).fit(X, y) for _ in range(2)]
    assert [m.status_ for m in ends] == ["converged"] * 2
    assert ends[0].n_iter_ == ends[1].n_iter_
    assert np.array_equal(ends[0].weights_, ends[1].weights_)
    further = Estimator(C=0.2, checkpoint=path, tol=1e-5, max_iter=1000).fit(X, y)
    assert further.n_iter_ > ends[0].n_iter_
    assert further.gap_ <= 1e-5


@BOTH
def test_a_killed_run_leaves_a_good_checkpoint(tmp_path, Estimator):
    X, y = words()
    path = tmp_path / "check.npz"

    def stop(point):
        if point.passes == 4:
            raise KeyboardInterrupt

    model = Estimator(C=0.2, tol=0.0, max_iter=8, checkpoint=path, checkpoint_interval=0.0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    resumed = Estimator(C=0.2, tol=0.0, max_iter=8, checkpoint=path).fit(X, y)
    assert np.array_equal(resumed.weights_, Estimator(C=0.2, tol=0.0, max_iter=8).fit(X, y).weights_)


@BOTH
def test_limits_callbacks_and_trace(Estimator, caplog):
    X, y = words()
    seen = []
    model = Estimator(C=5.0, tol=0.0, max_iter=7, eval_every=2, callback=seen.append).fit(X, y)
    assert [p.passes for p in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [p.primal is not None for p in seen] == [False, True, False, True, False, True, True]
    assert model.status_ == "iteration_limit"
    assert seen == model.trace_
    assert seen[-1].oracle_calls == 7 * len(X)
    stopped = Estimator(callback=lambda p: p.passes == 2).fit(X, y)
    assert (stopped.status_, stopped.n_iter_) == ("stopped", 2)
    with caplog.at_level("INFO", "fginfer"):
        Estimator(max_iter=3, tol=0.0, verbose=2).fit(X, y)
    said = [record.getMessage() for record in caplog.records]  # passes between have a row twice a second at most
    assert "seed" in said[0]
    assert "examples" in said[1]
    assert said[2].split()[0] == "pass"
    assert said[-2].split()[0] == "3"
    assert said[-1].startswith("iteration limit")


class Ticking(Trainer):
    """A solver, and the clock it runs by: a pass takes a second, and so does measuring."""

    measuring = 1.0

    def __init__(self):
        self.now = 1.0

    def advance(self, deadline):
        self.now += 1.0
        return True

    def wants_certificate(self, tol):
        return False

    def measure(self, deadline):
        self.now += 1.0
        return Measured(1.0 + 1 / self.now, 1.0)

    def counters(self):
        return 0, 0


def test_the_end_of_a_run_is_in_the_trace(monkeypatch):
    def run(*arguments, progress=SoFar(), **limits):  # noqa: B008
        solver = Ticking()
        monkeypatch.setattr("fginfer.core.clock.now", lambda: solver.now)
        return *drive(solver, Limits(**limits), *arguments, progress=progress), solver.now - 1.0

    status, trace, elapsed = run(max_iter=1000, time_limit=30.0)
    assert (status, [p[:2] for p in trace], trace[-1].gap) == ("time_limit", [(29, 29.0)], pytest.approx(1 / 32))
    assert elapsed == 30.0  # measuring included
    status, trace, elapsed = run(max_iter=1000, time_limit=2.0)
    assert (status, [p[:3] for p in trace]) == ("time_limit", [(2, 2.0, None)])  # measuring would overrun the limit
    assert elapsed == 2.0
    status, trace, _ = run(0, lambda p: p.passes == 25, max_iter=1000)
    assert (status, len(trace), trace[-1].passes) == ("stopped", 25, 25)
    assert [p.primal is None for p in trace] == [True] * 24 + [False]
    status, trace, _ = run(0, lambda p: p.passes == 5, max_iter=1000)
    assert (status, trace[-1].passes, trace[-1].primal) == ("stopped", 5, None)  # it was told to stop
    status, trace, _ = run(max_iter=50, eval_every=10, tol=0.04)
    assert (status, [p.passes for p in trace]) == ("converged", [10, 20, 30])
    status, trace, _ = run(max_iter=50, progress=SoFar(50, 7.0, 9.0))
    assert (status, [p[:2] for p in trace], trace[-1].gap) == ("iteration_limit", [(50, 7.0)], pytest.approx(1 / 3))
    status, trace, elapsed = run(max_iter=50, time_limit=5.0, progress=SoFar(40, 4.0, 7.0))
    assert (status, [p[:3] for p in trace], elapsed) == ("time_limit", [(40, 4.0, None)], 0.0)


@BOTH
def test_a_time_limit_is_not_an_error(Estimator):
    X, y = words()
    soon = Estimator(C=50.0, max_iter=10**9, time_limit=1e-9).fit(X, y)
    assert (soon.status_, soon.n_iter_, soon.primal_) == ("time_limit", 1, None)
    assert soon.trace_[-1].passes == 0
    assert len(soon.predict(X)) == len(X)


BAD = {
    "NaN": (lambda X, y: ([np.full((2, 4), np.nan), *X[1:]], [y[0][:0].tolist() + ["noun"] * 2, *y[1:]]), "NaN"),
    "ragged": (lambda X, y: ([[[1, 2, 3, 4], [1, 2]], *X[1:]], y), "rectangular"),
    "empty": (lambda X, y: ([np.zeros((0, 4)), *X[1:]], [np.array([]), *y[1:]]), "empty"),
    "length": (lambda X, y: (X, [[*y[0], "noun"], *y[1:]]), "tokens"),
    "count": (lambda X, y: (X, y[:-1]), "examples"),
    "width": (lambda X, y: ([np.zeros((len(X[0]), 5)), *X[1:]], y), "features"),
    "one_class": (lambda X, y: (X, [["noun"] * len(z) for z in y]), "one class"),
    "nothing": (lambda X, y: ([], []), "empty"),
}


@BOTH
@pytest.mark.parametrize("case", BAD)
def test_bad_training_data_is_refused_before_training(case, Estimator):
    X, y = words()
    damage, message = BAD[case]
    X, y = damage(X, y)
    with pytest.raises(FginferError, match=message):
        Estimator(callback=lambda p: pytest.fail("training started")).fit(X, y)


@BOTH
def test_bad_input_to_a_trained_model(Estimator):
    X, y = words()
    model = Estimator(max_iter=3).fit(X, y)
    with pytest.raises(DataError, match="trained with 4"):
        model.predict([np.zeros((2, 3))])
    with pytest.raises(DataError, match="not seen in training"):
        model.score(X, [["pronoun"] * len(z) for z in y])
    with pytest.raises(DataError, match="not seen in training"):
        model.predict([Example(np.zeros((1, 4)), candidates=[["pronoun"]])])


@BOTH
@pytest.mark.parametrize(
    "settings",
    [{"C": 0}, {"C": -1}, {"tol": -1}, {"max_iter": 0}, {"model": "lattice"}, {"solver": "newton"}, {"time_limit": -1},
     {"solver_options": {"x": 1}}, {"batch_size": 0}, {"C": None}, {"C": "1"}, {"C": True}, {"C": np.nan},
     {"tol": None}, {"tol": "x"}, {"max_iter": 2.5}, {"max_iter": None}, {"max_iter": True}, {"time_limit": "1"},
     {"time_limit": np.nan}, {"n_jobs": 0}, {"n_jobs": "2"}, {"n_jobs": 1.5}, {"random_state": "x"},
     {"random_state": -1}, {"random_state": 0.5}, {"verbose": "yes"}, {"verbose": None}, {"fit_intercept": None},
     {"pairwise": 1}, {"warm_start": "no"}, {"batch_size": 1.0}, {"batch_size": None}, {"oracle": "viterbi"},
     {"oracle": 3.5}, {"eval_every": -1}, {"eval_every": None}, {"callback": 3}, {"checkpoint": 3},
     {"checkpoint": "no/such/folder/file"}, {"checkpoint": "."},
     {"checkpoint_interval": -1}, {"checkpoint_interval": None}, {"solver_options": [1]}, {"solver_options": "x=1"},
     {"model": None}, {"solver": None}, {"model": ["chain"]}, {"batch_size": 2**40}, {"C": np.inf},
     {"solver_options": {"averaging": 1}}, {"solver_options": {"max_answers": 2.0}},
     {"solver_options": {"cached_passes": -1}}, {"solver_options": {"threshold": np.nan}},
     {"solver": "gdmm", "solver_options": {"greedy": 0}}, {"solver": "gdmm", "solver_options": {"rho": -1.0}},
     {"solver": "gdmm", "solver_options": {"rho": None}}, {"solver": "gdmm", "solver_options": {"partitions": 0}},
     {"solver": "gdmm", "solver_options": {"primal": "dual"}}, {"solver": "fw", "solver_options": {"rho": 1.0}}],
    ids=repr,
)  # fmt: skip
def test_bad_settings_are_refused(settings, Estimator):
    X, y = words(3)
    with pytest.raises(SettingsError):
        Estimator(**settings).fit(X, y)


def test_auto_chooses_what_can_measure_itself():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    Y = (X @ rng.normal(size=(4, 3)) > 0).astype(int)
    sets = StructuredSVM(model="multilabel", max_iter=30).fit(X, Y)
    assert sets.solver_ == "gdmm"
    assert sets.gap_ is not None
    assert StructuredSVM(model="multilabel", pairwise=False, max_iter=3).fit(X, Y).solver_ == "bcfw"
    assert StructuredSVM(model="multiclass", max_iter=3).fit(X, Y[:, 0]).solver_ == "bcfw"


def test_graphs_come_as_tuples_and_never_without_edges():
    rng = np.random.default_rng(1)
    edges = [(0, 1), (1, 2), (2, 0)]
    plain = [rng.normal(size=(3, 2)) for _ in range(6)]
    y = [(x[:, 0] > 0).astype(int) for x in plain]
    settings = {"model": "graph", "C": 0.1, "random_state": 0, "max_iter": 5}
    pairs = StructuredSVM(**settings).fit([(x, edges) for x in plain], y)
    named = StructuredSVM(**settings).fit([Example(x, edges=edges) for x in plain], y)
    assert np.array_equal(pairs.weights_, named.weights_)
    features = rng.normal(size=(3, 2))
    with_features = StructuredSVM(**settings).fit([(x, edges, features) for x in plain], y)
    assert with_features.pairwise_.shape[0] == 2
    with pytest.raises(DataError, match="needs its edges"):
        StructuredSVM(**settings).fit(plain, y)
    with pytest.raises(DataError, match="needs its edges"):
        pairs.predict(plain)
