"""Opens saved models of learning: those of the command line, and those of estimators."""

from __future__ import annotations

import os
from typing import Any

from fginfer.archives import DAMAGE
from fginfer.errors import FormatError
from fginfer.learn.crf import ChainCRF, GraphCRF, HierarchicalCRF
from fginfer.learn.embedding.classifier import EmbeddingClassifier
from fginfer.learn.estimator import StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.files.trained import FileModel
from fginfer.learn.files.treebank import ParseModel
from fginfer.learn.kernel import KernelStructuredSVM

# By the kind that a file says.
_ESTIMATORS: dict[str, Any] = {
    **{estimator.kind: estimator for estimator in (StructuredSVM, KernelStructuredSVM, ChainCRF, GraphCRF)},
    HierarchicalCRF.kind: HierarchicalCRF,
    EmbeddingClassifier.kind: EmbeddingClassifier,
}


def load_file_model(path: str | os.PathLike[str]) -> FileModel | ParseModel:
    """A tagger, classifier or parser that `fginfer train` has made."""
    header, arrays = storage.read(path)
    if header.get("file_model") is None:
        raise FormatError("this model was not made by `fginfer train`", str(path))
    return _file_model(header, arrays, path)


def load_model(path: str | os.PathLike[str]) -> Any:
    """The same, or an estimator of the class that saved it."""
    header, arrays = storage.read(path)
    if header.get("file_model") is not None:
        return _file_model(header, arrays, path)
    if "fingerprint" in header:
        raise FormatError("this is a checkpoint of a training; give it as checkpoint= to go on", str(path))
    kind = header.get("kind")
    estimator = _ESTIMATORS.get(kind) if isinstance(kind, str) else None
    if estimator is None:
        raise FormatError(f"a model of an unknown kind, {str(kind)[:40]!r}", str(path))
    if estimator is KernelStructuredSVM:
        return KernelStructuredSVM.load(path)  # asks for a kernel that a file cannot hold
    try:
        return estimator.unpack(header, arrays)
    except DAMAGE as error:
        raise FormatError(f"not a model of {estimator.__name__} ({error})", str(path)) from None


def _file_model(header: dict[str, Any], arrays: dict[str, Any], path: str | os.PathLike[str]) -> FileModel | ParseModel:
    extra: Any = header["file_model"]
    if isinstance(extra, dict) and extra.get("task") == ParseModel.task:
        return ParseModel.unpack(header, arrays, str(path))
    return FileModel.unpack(header, arrays, str(path))
