"""Damaged files of every reader: what they hold, or one of our errors and nothing else; truth/fuzz.sh tries more."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import pytest

from fginfer.formats import FORMATS

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
    attacked = {reader.suffix.lower() for reader in readers.values()}
    missed = [name for name, known in FORMATS.items() if known.extensions and attacked.isdisjoint(known.extensions)]
    assert missed == []  # a format without an extension is the reader of another, or qaplib
    assert "qaplib" in readers
    assert len(readers) == 56
    for name, reader in readers.items():
        inputs = 40 if name.startswith("checkpoint") else 150
        assert 0 < attack(reader, tmp_path, inputs, 7) <= inputs, name
