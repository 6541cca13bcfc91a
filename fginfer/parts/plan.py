"""PartsPlan: how a model is to be solved in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fginfer.errors import SettingsError
from fginfer.options import check_flag, check_whole


@dataclass(frozen=True)
class PartsPlan:
    """How a model is solved in parts; see fginfer.solve."""

    parts: Any = None
    client: Any = None
    security: Any = None
    checkpoint: str | None = None
    resume: bool = False
    sweeps: int | None = None  # iterations of a part in a round
    keep_every: int | None = None  # rounds between two that are kept; None: as time allows
    memory: float | None = None  # bytes for parts that take turns; None: half of the machine's, at most 8 GiB

    def check(self) -> None:
        """SettingsError for what does not fit together."""
        check_flag("resume", self.resume)
        if self.sweeps is not None:
            check_whole("sweeps", self.sweeps, least=1, bits=31)
        if self.keep_every is not None:
            check_whole("keep_every", self.keep_every, least=1, bits=31)
        if self.security is not None and self.client is None:
            raise SettingsError("security is for a cluster: give the address of a scheduler as client")
        if self.resume and self.checkpoint is None:
            raise SettingsError("resume needs the folder of a checkpoint")
