"""The table of a training run: columns that say something, rows that are worth one."""

import logging

import numpy as np
import pytest

from fginfer.learn import ChainCRF, StructuredSVM
from fginfer.learn.run.log import HEARTBEAT, OFTEN, TrainingLog
from fginfer.learn.run.loop import LearnPoint


def point(passes: int, seconds: float, primal=None, dual=None, gap=None, infeasibility=0.0, sampled=1.0) -> LearnPoint:
    return LearnPoint(passes, seconds, primal, dual, gap, infeasibility, 10 * passes, 100 * passes, sampled)


@pytest.fixture
def rows(caplog):
    caplog.set_level(logging.INFO, "fginfer")
    return lambda: [message.split() for message in caplog.messages]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 4)) for _ in range(12)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def test_passes_without_news_have_no_row_until_a_sign_of_life_is_due(rows):
    log = TrainingLog()
    for i in range(20):
        log(point(i + 1, 0.01 * i), measured=False)
    assert rows() == []
    log(point(30, OFTEN), measured=False)
    log(point(40, OFTEN + 0.9 * HEARTBEAT), measured=False)
    log(point(50, OFTEN + HEARTBEAT), measured=False)
    assert [r[0] for r in rows()] == ["pass", "30", "50"]


def test_objectives_that_are_known_at_once_have_a_row_twice_a_second(rows):
    log = TrainingLog()
    for i in range(1, 102):
        log(point(i, 0.02 * (i - 1), primal=5.0 - i), measured=False)
    assert [r[0] for r in rows()] == ["pass", "1", "26", "51", "76", "101"]


def test_what_is_measured_always_has_a_row_and_columns_appear_with_their_first_number(rows):
    log = TrainingLog()
    log(point(1, 0.0, primal=3.0), measured=True)
    log(point(2, 0.0, primal=2.5, dual=1.0, gap=0.6), measured=True)
    log(point(3, 0.0, primal=2.0, infeasibility=0.25, sampled=0.5), measured=True)
    assert rows() == [
        ["pass", "primal", "oracle", "calls", "touched", "time"],
        ["1", "3", "10", "100", "0.00s"],
        ["pass", "primal", "dual", "gap", "oracle", "calls", "touched", "time"],
        ["2", "2.5", "1", "6.0e-01", "20", "200", "0.00s"],
        ["pass", "primal", "dual", "gap", "infeas", "oracle", "calls", "touched", "time"],
        ["3", "~2", "-", "-", "2.5e-01", "30", "300", "0.00s"],
    ]


@pytest.mark.parametrize(
    ("estimator", "lacks"),
    [(StructuredSVM(verbose=2), "infeas"), (ChainCRF(verbose=2), "dual"), (StructuredSVM(solver="mira"), "primal")],
)
def test_no_column_is_empty_from_beginning_to_end(rows, problem, estimator, lacks):
    estimator.fit(*problem)
    table = rows()
    begin = max(i for i, row in enumerate(table) if row and row[0] == "pass")
    assert lacks not in table[begin]
    assert "-" not in table[begin + 1]
