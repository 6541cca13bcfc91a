"""fginfer info on learned models, and how a primal that is an estimate is told."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fginfer.cli import main
from fginfer.learn import ChainCRF, KernelStructuredSVM, StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.run.trainer import Measured
from fginfer.learn.solvers.bcfw import Bcfw


def info(capsys, path, *more):
    code = main(["info", str(path), *more])
    return code, *capsys.readouterr()


def chains():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(10)]
    return X, [np.array(["a", "b", "c"])[x.argmax(1)] for x in X]


@pytest.mark.parametrize("estimator", [StructuredSVM(), ChainCRF(l1=0.5), KernelStructuredSVM()])
def test_learned_models_are_described(tmp_path, capsys, estimator):
    model = estimator.fit(*chains())
    model.save(tmp_path / "m.npz")
    code, out, _ = info(capsys, tmp_path / "m.npz", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["kind"] == model.kind
    assert (found["labels"], found["first_labels"], found["features"]) == (3, ["a", "b", "c"], 3)
    assert found["solver"] == getattr(model, "solver_", model.solver)
    assert (found["weights"], found["nonzeros"]) == (len(model.weights_), np.count_nonzero(model.weights_))
    assert (found["status"], found["primal"]) == (model.status_, model.primal_)
    code, out, _ = info(capsys, tmp_path / "m.npz")
    assert code == 0
    assert "3: a, b, c" in out
    assert f"{np.count_nonzero(model.weights_)} (" in out


def test_models_of_the_command_line_checkpoints_and_damage(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("the D\ndog N\n\na D\ncat N\n\n" * 5)
    assert main(["train", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m.npz"), "--quiet"]) == 0
    capsys.readouterr()
    found = json.loads(info(capsys, tmp_path / "m.npz", "--json")[1])
    assert (found["data"], found["model"], found["feature_names"]) == ("conll", "chain", True)
    StructuredSVM(checkpoint=tmp_path / "c.npz").fit(*chains())
    code, out, _ = info(capsys, tmp_path / "c.npz")
    assert code == 0
    assert "checkpoint" in out
    storage.write(tmp_path / "bad.npz", {"kind": "linear"}, {})
    code, _, error = info(capsys, tmp_path / "bad.npz")
    assert code == 3
    assert "not a learned model" in error


def test_an_estimate_is_called_one(tmp_path, capsys, monkeypatch):
    whole = StructuredSVM(random_state=0).fit(*chains())
    assert whole.sampled_ == 1.0
    monkeypatch.setattr(Bcfw, "measure", lambda self, deadline=np.inf: Measured(2.0, 1.0, 0.0, 0.25))
    with pytest.warns(UserWarning, match=r"estimate from 25.0% of the examples"):
        svm = StructuredSVM(random_state=0, max_iter=2).fit(*chains())
    assert (svm.sampled_, svm.gap_) == (0.25, None)
    svm.save(tmp_path / "m.npz")
    assert StructuredSVM.load(tmp_path / "m.npz").sampled_ == 0.25
    assert "about 2, from a sample of 25.0% of the examples" in info(capsys, tmp_path / "m.npz")[1]
