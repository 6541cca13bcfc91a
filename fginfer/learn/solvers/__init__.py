"""The learning solvers, and the table that makes one from its name."""
