"""MAP as a layer: best labelings, losses and sparse marginals of batches of scores, with gradients.

numpy is all that is needed; tensors of torch (the extra `torch`) are taken wherever arrays are.
"""

from fginfer.nn.layer import Answer, Layer
from fginfer.nn.maps import Report
from fginfer.nn.scores import Gradients, Loss
from fginfer.nn.structure import Structure

__all__ = ["Answer", "Gradients", "Layer", "Loss", "Report", "Structure"]
