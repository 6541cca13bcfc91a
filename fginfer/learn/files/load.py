"""Opens the models of the command line: taggers, classifiers and parsers."""

from __future__ import annotations

import os
from typing import Any

from fginfer.errors import FormatError
from fginfer.learn.files import storage
from fginfer.learn.files.trained import FileModel
from fginfer.learn.files.treebank import ParseModel


def load_file_model(path: str | os.PathLike[str]) -> FileModel | ParseModel:
    header, arrays = storage.read(path)
    extra: Any = header.get("file_model")
    if extra is None:
        raise FormatError("this model was not made by `fginfer train`", str(path))
    if isinstance(extra, dict) and extra.get("task") == ParseModel.task:
        return ParseModel.unpack(header, arrays, str(path))
    return FileModel.unpack(header, arrays, str(path))
