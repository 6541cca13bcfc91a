"""Plain Python versions of what the core does, to read and to test against.

ReferenceTable   the bigram oracle on sorted lists: the whole table, its rows, its columns
ReferenceGdmm    Algorithm 8 as printed: sorted lists, one projected step, fixed rho and eta
"""

from fginfer.reference.gdmm import ReferenceGdmm
from fginfer.reference.table import ReferenceTable

__all__ = ["ReferenceGdmm", "ReferenceTable"]
