"""The method `auto`: presolve, exact methods, relaxations and searches that share what they find."""
