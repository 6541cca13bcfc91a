"""Plain Python versions of what the core does, to read and to test against.

ReferenceTable   the bigram oracle on sorted lists: the whole table, its rows, its columns
"""

from fginfer.reference.table import ReferenceTable

__all__ = ["ReferenceTable"]
