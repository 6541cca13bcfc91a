"""The commands of the command line, one module each.

A module has `register(subparsers)`, which adds its parser and sets the default `run` to a function that takes the
parsed arguments and returns the exit code. Heavy imports belong into that function. A new module is found by itself.
"""
