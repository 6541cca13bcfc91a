"""What all tests share.

Property tests try new examples on every run at a desk, and the same ones in CI: a red run means the change."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No test depends on the speed of the machine: no deadline for an example, no measure of how fast they are made.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Programs that the tests start run the installed package, not the source folder they happen to stand in.
os.environ["PYTHONSAFEPATH"] = "1"

# A background job of a shell starts with Ctrl-C ignored, and its children inherit that: the tests send it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def quiet_logging() -> Iterator[None]:
    """Log levels as a new process has them, whatever an import or another test has set."""
    loggers = (logging.getLogger(), logging.getLogger("fginfer"))
    before = [logger.level for logger in loggers]
    loggers[0].setLevel(logging.WARNING)
    loggers[1].setLevel(logging.NOTSET)
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.fixture
def bench() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m bench` as its readers do: in the clone, whose folder `python -m` looks into first."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bench", *arguments],
            cwd=Path(__file__).resolve().parents[1],
            env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
