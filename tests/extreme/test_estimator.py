"""ExtremeClassifier as users see it: labels in all forms, files, checkpoints, workshops, bad input."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from fginfer.errors import DataError, FginferError, FormatError, SettingsError, SolverError
from fginfer.extreme import ExtremeClassifier, ExtremeClassifierCV, SparseModel, workshops

from .problems import random_problem, same_model

SOLVERS = ("ppd-sparse", "pd-sparse")


@pytest.mark.parametrize("solver", SOLVERS)
def test_scikit_learns_checks(solver):
    failed = [
        (r["check_name"], r["exception"])
        for r in check_estimator(ExtremeClassifier(solver, C=1.0, max_iter=200), on_fail=None, on_skip=None)
        if r["status"] not in ("passed", "skipped")
    ]
    assert failed == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_forms_of_labels_give_the_same_model(solver):
    X, y = random_problem(1)
    matrix = np.zeros((60, 12), int)
    for i, labels in enumerate(y):
        matrix[i, labels] = 1
    names = np.array([f"label {k:02}" for k in range(12)])
    lists = ExtremeClassifier(solver, max_iter=20).fit(X, y)
    others = [matrix, sp.csr_matrix(matrix), [tuple(labels) for labels in y], [set(labels) for labels in y]]
    for other in others:
        model = ExtremeClassifier(solver, max_iter=20).fit(X.toarray(), other)
        assert same_model(model.model_, lists.model_)
    texts = ExtremeClassifier(solver, max_iter=20).fit(X, [names[labels].tolist() for labels in y])
    assert same_model(texts.model_, lists.model_)
    assert texts.predict(X)[:3] == [[f"label {k:02}" for k in labels] for labels in lists.predict(X)[:3]]
    dense = ExtremeClassifier(solver, max_iter=20).fit(X, matrix).predict(X)
    assert np.array_equal(
        ExtremeClassifier(solver, max_iter=20).fit(X, sp.csr_matrix(matrix)).predict(X).toarray(), dense
    )
    assert [np.flatnonzero(row).tolist() for row in dense] == lists.predict(X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_learns_what_can_be_learned(solver):
    X, y = random_problem(2, n=300, d=60, k=8, density=0.3)
    model = ExtremeClassifier(solver, C=10.0, lam=0.0, tol=1e-3, max_iter=300).fit(X, y)
    found = model.evaluate(X, y)
    assert model.status_ == "converged"
    assert model.gap_ <= 1e-3
    assert model.dual_ <= model.primal_
    assert found["p@1"] > 0.95
    assert found["ndcg@5"] > 0.9
    point = model.trace_[-1]
    assert point.k_W == pytest.approx(model.model_.weights.nnz / 60, rel=0.01)
    assert 0 < point.k_A <= 8


def test_searching_by_an_index():
    X, y = random_problem(2, n=300, d=20, k=50, density=0.8, most=1)
    settings = {"solver": "pd-sparse", "C": 1.0, "max_iter": 8}
    rows = ExtremeClassifier(**settings, solver_options={"partitions": 1}).fit(X, y)
    index = ExtremeClassifier(**settings, solver_options={"search": "index"}).fit(X, y)
    assert same_model(rows.model_, index.model_)
    assert rows.gap_ == index.gap_
    wrong = [{"search": "index", "partitions": 2}, {"search": "magic"}]
    for options in wrong:
        with pytest.raises(SettingsError):
            ExtremeClassifier(**settings, solver_options=options).fit(X, y)
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(300, 10**8))
    with pytest.raises(SettingsError, match="too much"):
        ExtremeClassifier(**settings, solver_options={"search": "index"}).fit(wide, y)


def test_multiclass():
    X, y = random_problem(2, n=300, d=60, k=5, density=0.3, most=1)
    names = np.array(["a", "b", "c", "d", "e"])
    truth = names[[labels[0] for labels in y]]
    model = ExtremeClassifier(C=10.0, lam=0.0).fit(X, truth)
    assert model.score(X, truth) > 0.95
    assert model.predict(X).dtype == names.dtype
    labels, scores = model.predict_topk(X, 3)
    assert labels.shape == (300, 3)
    assert np.array_equal(labels[:, 0], model.predict(X))
    full = model.decision_function(X)
    assert np.array_equal(np.sort(full, axis=1)[:, ::-1][:, :3], scores)
    assert np.array_equal(model.decision_function(X, ["c", "a"]), full[:, [2, 0]])


def test_labels_that_no_training_row_had_count_as_missed():
    X, y = random_problem(2, n=200, d=60, k=8, density=0.3)
    model = ExtremeClassifier(C=10.0, lam=0.0).fit(X, y)
    whole = model.evaluate(X, y)
    mixed = [[*labels, 99] if i % 2 else [77] for i, labels in enumerate(y)]
    found = model.evaluate(X, mixed)
    answers = model.predict_topk(X, 1)[0][:, 0]
    assert found["p@1"] == pytest.approx(np.mean([answers[i] in mixed[i] for i in range(200)]))
    assert found["p@1"] < whole["p@1"]
    assert found["psp@1"] < whole["psp@1"]
    assert found["micro_f1"] < whole["micro_f1"]
    assert model.score(X, mixed) == found["p@1"]
    assert model.evaluate(X, [[77]] * 200)["p@5"] == 0.0


def test_pruning_and_retraining_some_labels():
    X, y = random_problem(3, n=200, d=80, k=20)
    model = ExtremeClassifier(lam=0.0).fit(X, y)
    half = model.model_.pruned(float(np.median(np.abs(model.model_.weights.value))))
    assert 0 < half.weights.nnz < 0.6 * model.model_.weights.nnz
    assert (np.abs(half.weights.value) > np.median(np.abs(model.model_.weights.value))).all()
    pruned = clone(model).fit(X, y).prune_on(X, y, loss=0.02)
    assert pruned.model_.weights.nnz < model.model_.weights.nnz
    assert pruned.evaluate(X, y)["p@1"] > model.evaluate(X, y)["p@1"] - 0.06
    other = [[k for k in labels if k != 3] or [4] for labels in y]
    expected = ExtremeClassifier(lam=0.0, classes=np.arange(20)).fit(X, other).coef_.toarray()
    before = model.coef_.toarray()
    model.partial_retrain(X, other, [3, 7])
    after = model.coef_.toarray()
    changed = [k for k in range(20) if not np.array_equal(before[k], after[k])]
    assert changed == [3]  # label 7 has the same rows as before
    assert np.array_equal(after[3], expected[3])
    with pytest.raises(DataError, match="99"):
        model.partial_retrain(X, y, [99])


def test_retraining_that_is_cut_short_says_so(monkeypatch):
    X, y = random_problem(3, n=200, d=80, k=20)
    model = ExtremeClassifier().fit(X, y)
    before = model.coef_.toarray()
    run = workshops.Threads.run

    def lose_the_rest(self, parts, stop):
        yield next(run(self, parts, stop))
        raise SolverError("the workers are gone")

    monkeypatch.setattr(workshops.Threads, "run", lose_the_rest)
    other = [[k for k in labels if k not in (3, 7)] or [4] for labels in y]
    with pytest.raises(SolverError, match="gone; 1 of 2 labels are trained again, the others as before"):
        model.partial_retrain(X, other, [3, 7])
    after = model.coef_.toarray()
    assert sum(not np.array_equal(before[k], after[k]) for k in range(20)) == 1


# ---- files


@pytest.mark.parametrize("classes", [np.arange(5, 17), np.array([f"ü\n{k}" for k in range(12)])])
def test_model_files_are_mapped_and_give_the_same_answers(tmp_path, classes):
    X, y = random_problem(4)
    classes = np.sort(classes)
    model = ExtremeClassifier().fit(X, [classes[labels].tolist() for labels in y])
    model.save(tmp_path / "model.fgx")
    again = ExtremeClassifier.load(tmp_path / "model.fgx")
    assert isinstance(again.model_, SparseModel)
    assert not again.model_.weights.value.flags.writeable
    for a, b in zip(model.predict_topk(X), again.predict_topk(X), strict=True):
        assert np.array_equal(a, b)
    assert again.evaluate(X, model.predict(X)) == model.evaluate(X, model.predict(X))
    for copy in (pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(again))):
        assert np.array_equal(copy.predict_topk(X)[1], model.predict_topk(X)[1])


def test_damaged_model_files(tmp_path):
    X, y = random_problem(4)
    path = tmp_path / "model.fgx"
    ExtremeClassifier().fit(X, y).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in [*rng.integers(0, len(content), 30), 0, 8, 16, 60]:
        path.write_bytes(content[:cut])
        with pytest.raises(FormatError):
            ExtremeClassifier.load(path)
    for at in rng.integers(0, len(content), 300):  # either noticed, or harmless
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        with suppress(FginferError):
            labels, _ = ExtremeClassifier.load(path).predict_topk(X)
            assert labels.shape == (60, 5)
    with pytest.raises(FormatError, match="there is no such file"):
        ExtremeClassifier.load(tmp_path / "missing")


# ---- running, stopping, going on


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_do_not_matter(solver, n_jobs):
    X, y = random_problem(5, n=150, d=80, k=25)
    assert same_model(
        ExtremeClassifier(solver, max_iter=10).fit(X, y).model_,
        ExtremeClassifier(solver, max_iter=10, n_jobs=n_jobs).fit(X, y).model_,
    )


@pytest.mark.slow
def test_processes_do_not_matter():
    X, y = random_problem(5, n=150, d=80, k=25)
    serial = ExtremeClassifier().fit(X, y)
    assert same_model(serial.model_, ExtremeClassifier(n_jobs=2, scheduler="processes").fit(X, y).model_)


@pytest.mark.slow
def test_a_killed_process_costs_its_chunk_only():
    X, y = random_problem(6, n=300, d=150, k=100, density=0.1)
    settings = {"C": 10.0, "tol": 1e-6, "max_iter": 1000}
    killed = []

    def kill() -> None:
        while not killed:
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):
                    if "popen_loky" in " ".join(child.cmdline()):
                        child.kill()
                        killed.append(child.pid)
                        return
            time.sleep(0.001)

    get_reusable_executor(2).shutdown(wait=True, kill_workers=True)  # processes of other tests
    thread = threading.Thread(target=kill)
    thread.start()
    model = ExtremeClassifier(**settings, n_jobs=2, scheduler="processes").fit(X, y)
    thread.join()
    assert same_model(ExtremeClassifier(**settings).fit(X, y).model_, model.model_)


def test_a_time_limit_reaches_processes():
    X, y = random_problem(6, n=500, d=150, k=150, density=0.1)
    model = ExtremeClassifier(C=100.0, tol=0.0, max_iter=10**6, n_jobs=2, scheduler="processes", time_limit=0.02)
    model.fit(X, y)
    assert model.status_ == "time_limit"
    assert model.n_trained_ < len(model.classes_)


def test_chunks_for_threads_keep_the_order():
    positives = np.array([50, 1, 30, 2, 2, 9])
    parts = workshops.chunks(positives, np.arange(6), 2)
    assert [len(p) for p in parts] == [1] * 6  # for a cluster, the longest first
    assert np.concatenate(parts)[:3].tolist() == [0, 2, 5]
    assert [p.tolist() for p in workshops.merged(parts, 4)] == [[0, 2, 5, 3], [4, 1]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_time_limit_keeps_what_there_is(solver, tmp_path):
    X, y = random_problem(5, n=150, d=80, k=25)
    path = tmp_path / "run"
    cut = ExtremeClassifier(solver, C=1.0, tol=1e-4, time_limit=0.0, checkpoint=path).fit(X, y)
    assert cut.status_ == "time_limit"
    assert cut.predict_topk(X, 2)[0].shape == (150, 2)
    if solver == "ppd-sparse":
        assert cut.n_trained_ < 25
    on = ExtremeClassifier(solver, C=1.0, tol=1e-4, checkpoint=path).fit(X, y)
    assert same_model(on.model_, ExtremeClassifier(solver, C=1.0, tol=1e-4).fit(X, y).model_)
    assert same_model(ExtremeClassifier(solver, C=1.0, tol=1e-4, checkpoint=path).fit(X, y).model_, on.model_)
    with pytest.raises(SettingsError, match="other data or settings"):
        ExtremeClassifier(solver, C=2.0, checkpoint=path).fit(X, y)


def test_a_torn_journal_loses_its_last_record_only(tmp_path):
    X, y = random_problem(5, n=150, d=80, k=25)
    path = tmp_path / "run"
    whole = ExtremeClassifier(checkpoint=path).fit(X, y)
    content = path.read_bytes()
    for cut in (len(content) - 1, len(content) // 2, 80, 40, 0):
        path.write_bytes(content[:cut])
        assert same_model(ExtremeClassifier(checkpoint=path).fit(X, y).model_, whole.model_)
        assert path.stat().st_size >= len(content)
    path.write_bytes(b"something else entirely, and long enough")
    with pytest.raises(FormatError, match="no checkpoint"):
        ExtremeClassifier(checkpoint=path).fit(X, y)


KILLED = """
    import sys; sys.path.append({root!r})
    from tests.extreme.problems import random_problem
    from fginfer.extreme import ExtremeClassifier
    X, y = random_problem(6, n=500, d=150, k=150, density=0.1)
    run = dict(C=1.0, tol=1e-7, max_iter=400, checkpoint={path!r}, checkpoint_interval=0.01)
    ExtremeClassifier({solver!r}, **run).fit(X, y)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "max_iter"), [("ppd-sparse", 400), ("pd-sparse", 40)])
def test_kill_and_resume(solver, max_iter, tmp_path):
    path = tmp_path / "run"
    code = textwrap.dedent(KILLED.format(solver=solver, path=str(path), root=os.getcwd()))
    child = subprocess.Popen([sys.executable, "-P", "-c", code])
    while child.poll() is None and not (path.exists() and path.stat().st_size > 2000):
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL  # it was at work
    X, y = random_problem(6, n=500, d=150, k=150, density=0.1)
    settings = {"solver": solver, "C": 1.0, "tol": 1e-7, "max_iter": max_iter}
    on = ExtremeClassifier(**settings, checkpoint=path).fit(X, y)
    assert on.n_iter_ <= max_iter
    assert same_model(on.model_, ExtremeClassifier(**settings).fit(X, y).model_)


def test_pd_converges_with_large_C_and_resumes_between_joint_steps(tmp_path):
    """A gap of 5e-4 was left after 5000 passes."""
    X, y = random_problem(2, n=30, d=6, k=30, density=0.9, most=5)
    settings = {"solver": "pd-sparse", "C": 100.0, "lam": 0.05, "tol": 1e-6}
    model = ExtremeClassifier(**settings, max_iter=1000).fit(X, y)
    assert model.status_ == "converged"
    assert model.gap_ <= 1e-6
    path = tmp_path / "run"
    for passes in (70, 1000):
        on = ExtremeClassifier(**settings, max_iter=passes, checkpoint=path).fit(X, y)
    assert same_model(on.model_, model.model_)
    assert on.n_iter_ == model.n_iter_


def test_a_refit_after_training_keeps_the_weights_few():
    X, y = random_problem(2, n=200, d=60, k=8, density=0.3)
    settings = {"solver": "pd-sparse", "lam": 0.1, "max_iter": 50}
    plain = ExtremeClassifier(**settings).fit(X, y)
    again = ExtremeClassifier(**settings, solver_options={"refit": True}).fit(X, y)
    assert again.gap_ == plain.gap_
    assert again.model_.weights.nnz <= plain.model_.weights.nnz
    assert np.abs(again.model_.weights.value).sum() > np.abs(plain.model_.weights.value).sum()
    with pytest.raises(SettingsError):
        ExtremeClassifier(**settings, solver_options={"refit": "no"}).fit(X, y)


# ---- choosing C and lambda


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_search_chooses_on_held_out_rows(solver):
    X, y = random_problem(8, n=300, d=60, k=8, density=0.3)
    model = ExtremeClassifierCV(solver, unit_rows=False, max_iter=30).fit(X, y)
    tried = model.results_
    assert len(tried) == 7
    assert model.C_ in {r["C"] for r in tried}
    assert model.lam_ in {r["lam"] for r in tried}
    best = max(tried, key=lambda r: (r["mean"], -r["weights"]))
    assert (model.C_, model.lam_) == (best["C"], best["lam"])
    assert model.evaluate(X, y)["p@1"] > 0.8
    given = ExtremeClassifierCV(solver, Cs=[1.0], lams=[0.0, 0.1], max_iter=30).fit(X, y)
    assert [r["lam"] for r in given.results_] == [0.0, 0.1]
    assert clone(given).get_params()["Cs"] == [1.0]


def test_groups_are_held_out_together():
    """Rows come in identical pairs: held out apart, the copy of a row has seen its label, and everything is known."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((100, 400)) < 0.05, 2, axis=0).astype(float)
    y = np.repeat(rng.integers(0, 20, 100), 2)  # nothing to be learned but by heart
    pairs = np.repeat(np.arange(100), 2)
    given = {"Cs": [10.0], "lams": [0.0], "held_out": 0.2, "random_state": 0}
    apart = ExtremeClassifierCV(**given).fit(X, y)
    together = ExtremeClassifierCV(**given).fit(X, y, groups=pairs)
    assert apart.results_[0]["p@1"] > 0.7
    assert together.results_[0]["p@1"] < 0.3
    train, test = together._split(200, pairs)
    assert not set(pairs[train]) & set(pairs[test])
    assert 40 <= len(test) < 44
    assert len(train) + len(test) == 200
    for wrong, why in (([0] * 200, "one group"), (pairs[1:], "one entry for each")):
        with pytest.raises(DataError, match=why):
            ExtremeClassifierCV(**given).fit(X, y, groups=wrong)


def test_ppd_stops_early_where_held_out_precision_no_longer_rises():
    X, y = random_problem(8, n=400, d=60, k=8, density=0.3)
    given = {"Cs": [1.0], "lams": [0.0], "tol": 1e-4, "random_state": 0}
    full = ExtremeClassifierCV(early_stopping=False, **given).fit(X, y)
    early = ExtremeClassifierCV(**given).fit(X, y)
    assert full.tol_ == full.tol == early.tol == 1e-4
    assert early.tol_ > 1e-4  # the data are easy
    assert early.results_[0]["p@1"] >= full.results_[0]["p@1"] - 0.02
    assert early.label_info_["epochs"].sum() < full.label_info_["epochs"].sum()
    # it is the model of that tolerance, on all rows
    same = ExtremeClassifier(C=1.0, lam=0.0, tol=early.tol_, random_state=0).fit(X, y)
    assert same_model(early.model_, same.model_)


def test_the_search_chooses_the_intercept_too():
    X, y = random_problem(8, n=300, d=60, k=8, density=0.3)
    model = ExtremeClassifierCV(Cs=[1.0], lams=[0.0], intercepts=["shifted", "fixed", "none"]).fit(X, y)
    assert [r["intercept"] for r in model.results_] == ["shifted", "fixed", "none"]
    assert model.intercept_chosen_ == max(model.results_, key=lambda r: (r["mean"], -r["weights"]))["intercept"]
    assert model.intercept == "shifted"  # what was given stays


def test_the_search_leaves_time_for_the_model():
    X, y = random_problem(6, n=500, d=150, k=150, density=0.1)
    model = ExtremeClassifierCV(tol=1e-9, max_iter=10**6, time_limit=4.0).fit(X, y)
    assert len(model.results_) == 7  # every try had its share
    assert model.n_trained_ > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"Cs": []},
        {"lams": []},
        {"Cs": [-1.0]},
        {"Cs": ["a"]},
        {"held_out": "x"},
        {"held_out": 1.0},
        {"intercepts": ["maybe"]},
    ],
)
def test_bad_grids(wrong):
    X, y = random_problem()
    with pytest.raises(SettingsError):
        ExtremeClassifierCV(**wrong).fit(X, y)


def test_the_grid_fits_the_scale_of_the_rows():
    X, y = random_problem(8, n=200, d=60, k=8, density=0.3)
    one = ExtremeClassifierCV(intercept="fixed", unit_rows=False).fit(X, y)
    ten = ExtremeClassifierCV(intercept="fixed", unit_rows=False).fit(X * 8, y)
    assert pytest.approx(one.C_) == ten.C_ * 64
    assert ten.lam_ * 8 == pytest.approx(one.lam_)
    for a, b in zip(one.results_, ten.results_, strict=True):
        assert a["p@1"] == b["p@1"]


# ---- bad input


def test_bad_input_is_refused_before_any_work(tmp_path):
    X, y = random_problem()
    bad = X.toarray()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ExtremeClassifier().fit(bad, y)
    with pytest.raises(DataError, match="not finite"):
        ExtremeClassifier(unit_rows=False).fit(X.astype(float) * 1e300, y)
    with pytest.raises(DataError, match="partly text"):
        ExtremeClassifier().fit(X, [["a", 1], *y[1:]])
    with pytest.raises(DataError, match="labels of 59"):
        ExtremeClassifier().fit(X, y[1:])
    with pytest.raises(DataError, match="row 5 has no label"):
        ExtremeClassifier("pd-sparse").fit(X, [[] if i == 5 else labels for i, labels in enumerate(y)])
    with pytest.raises(DataError, match="not among the 3 classes"):
        ExtremeClassifier(classes=[0, 1, 2]).fit(X, y)
    with pytest.raises(DataError, match="0 and 1 only"):
        ExtremeClassifier().fit(X, 2 * np.ones((60, 3), int))
    with pytest.raises(DataError, match="no label"):
        ExtremeClassifier().fit(X, [[] for _ in range(60)])
    model = ExtremeClassifier().fit(X, y)
    with pytest.raises(DataError, match="not among"):
        model.evaluate(X, [["seven"]] * 60)
    with pytest.raises(DataError, match="labels of 59"):
        model.evaluate(X, y[1:])
    with pytest.raises(DataError, match="labels of 59"):
        model.prune_on(X, y[1:])
    with pytest.raises(SettingsError, match="at least one k"):
        model.evaluate(X, y, at=())
    for wrong in (0, -1, 1.5, "many"):
        with pytest.raises(SettingsError):
            model.predict_topk(X, wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"solver": "magic"}, {"C": 0}, {"C": "1"}, {"lam": -1}, {"loss": "log"}, {"intercept": "maybe"}, {"tol": -1},
        {"max_iter": 0}, {"n_jobs": 0}, {"scheduler": "somewhere"}, {"scheduler": 7}, {"classes": [2, 1]},
        {"solver_options": {"speed": 9}}, {"solver": "pd-sparse", "scheduler": "processes"}, {"time_limit": -1},
    ],
)  # fmt: skip
def test_bad_settings(wrong):
    X, y = random_problem()
    with pytest.raises(SettingsError):
        ExtremeClassifier(**wrong).fit(X, y)


def test_a_clock_that_jumps_ends_nothing(monkeypatch):
    until = workshops.Deadline.after(100.0)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert 90.0 < until.left() <= 100.0
    assert workshops.Deadline("elsewhere", 0.0, 1e12 + 50.0).left() == 50.0  # whose steady clock says nothing here
    assert workshops.Deadline("elsewhere", 1e30, 1e12 - 50.0).left() == 0.0
