"""Models of other libraries in and out in one call: dimod and pgmpy. Neither is needed until one of these is asked for.

`from_dimod`, `to_dimod` and `DimodSampler`; `from_pgmpy`, `to_pgmpy` and `PgmpyInference`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fginfer.interop.dimod_models import from_dimod, to_dimod
    from fginfer.interop.dimod_sampler import DimodSampler
    from fginfer.interop.pgmpy_inference import PgmpyInference
    from fginfer.interop.pgmpy_models import from_pgmpy, to_pgmpy

__all__ = ["DimodSampler", "PgmpyInference", "from_dimod", "from_pgmpy", "to_dimod", "to_pgmpy"]

_LIVES = {
    "from_dimod": "dimod_models",
    "to_dimod": "dimod_models",
    "DimodSampler": "dimod_sampler",
    "from_pgmpy": "pgmpy_models",
    "to_pgmpy": "pgmpy_models",
    "PgmpyInference": "pgmpy_inference",
}


def __getattr__(name: str) -> Any:
    if name not in _LIVES:
        raise AttributeError(f"module 'fginfer.interop' has no attribute {name!r}")
    module = _LIVES[name]
    try:
        return getattr(import_module(f"fginfer.interop.{module}"), name)
    except ModuleNotFoundError as error:
        library = module.split("_")[0]
        if (error.name or "").startswith("fginfer"):
            raise
        raise ImportError(
            f"fginfer.interop.{name} needs {library}, and {error.name} is missing: pip install {library}"
        ) from None


def __dir__() -> list[str]:
    return __all__
