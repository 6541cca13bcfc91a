"""Latent-variable models by convex estimation: the greedy atom is a binary MAP problem.

:class:`LatentFeatureLasso` writes rows as sums of latent features, :class:`MixedRegression` outputs as sums of latent
regressions; :func:`find_atom` is the oracle behind both;
:class:`BPMeans` is the local method it is compared with.
"""

from fginfer.latent.alternating import BPMeans
from fginfer.latent.atom import Atom, find_atom
from fginfer.latent.greedy import LassoPoint
from fginfer.latent.lasso import LatentFeatureLasso
from fginfer.latent.mixture import MixedRegression

__all__ = ["Atom", "BPMeans", "LassoPoint", "LatentFeatureLasso", "MixedRegression", "find_atom"]
