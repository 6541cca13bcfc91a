"""What a file of a learned model holds, for `fginfer info`."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np

from fginfer.archives import DAMAGE, begins_with
from fginfer.errors import DataError, FormatError
from fginfer.learn.files import storage
from fginfer.learn.run.loop import SoFar
from fginfer.learn.solvers.registry import choose_solver

_SHOWN = 20  # labels by name


def is_learned(path: str | os.PathLike[str]) -> bool:
    """Whether it looks like a file that estimators write; it may still be damaged."""
    return b'"fginfer_model"' in begins_with(path, "header")


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Kind, labels, features, solver and weights of a model, as JSON has them."""
    header, arrays = storage.read(path)
    if "fingerprint" in header:
        try:
            return {"kind": "checkpoint", **asdict(SoFar.restored(header.get("progress")))}
        except DataError as error:
            raise FormatError(f"damaged checkpoint ({error})", str(path)) from None
    try:
        parameters, classes = header["parameters"], arrays["classes"]
        model = parameters.get("model")
        solver = parameters.get("solver")
        if solver == "auto":
            solver = choose_solver(solver, model, parameters.get("pairwise", True))
        values = arrays["values"] if "values" in arrays else arrays["weights"]  # random fields keep the non-zeros
        size = int(arrays["size"][0]) if "size" in arrays else values.size
        out: dict[str, Any] = {"kind": header["kind"]}
        if model is not None:
            out["model"] = model
        if "file_model" in header:
            out["data"] = header["file_model"]["format"]
        out |= {
            "labels": len(classes), "first_labels": classes[:_SHOWN].tolist(), "features": header["n_features_in"],
            "feature_names": "feature_names" in arrays or "features" in header.get("file_model", {}),
            "edge_features": header["n_edge_features"], "solver": solver, "status": header["status"],
            "passes": header["n_iter"], "primal": header["primal"], "dual": header["dual"], "gap": header["gap"],
            "sampled": header.get("sampled", 1.0), "weights": size, "nonzeros": int(np.count_nonzero(values)),
        }  # fmt: skip
        out["parameters"] = parameters
    except DAMAGE as error:
        raise FormatError(f"not a learned model, or damaged ({error})", str(path)) from None
    return out
