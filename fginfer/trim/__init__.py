"""Trimming trained networks: layerwise l1 by proximal quasi-Newton steps, from the weights they have.

:func:`trim` works on a :class:`Network` of this package and on any ``torch.nn.Module`` (extra ``torch``).
"""

from fginfer.trim.deep import LayerReport, Trimmed, TrimReport, magnitude_prune, trim
from fginfer.trim.network import Network
from fginfer.trim.purify import Purified, purify
from fginfer.trim.stages import Convolution

__all__ = [
    "Convolution", "LayerReport", "Network", "Purified", "TrimReport", "Trimmed", "magnitude_prune", "purify", "trim",
]  # fmt: skip
