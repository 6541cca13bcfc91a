"""What all tests share.

Property tests try new examples on every run at a desk, and the same ones in CI: a red run means the change."""

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

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
