"""Damaged files of every reader: what they hold, or one of our errors and nothing else; bench/fuzz.sh tries more."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from readers import Reader, attack, learning_readers, model_readers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    folder = tmp_path_factory.mktemp("seeds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model_readers(folder) | learning_readers(folder)


@pytest.mark.filterwarnings("ignore")
def test_every_reader_refuses_or_reads(readers: dict[str, Reader], tmp_path: Path) -> None:
    logging.getLogger("fginfer").setLevel(logging.CRITICAL)
    assert len(readers) == 41
    for name, reader in readers.items():
        inputs = 40 if name.startswith("checkpoint") else 150
        assert 0 < attack(reader, tmp_path, inputs, 7) <= inputs, name
