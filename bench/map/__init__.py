"""Benches of inference: methods beside peers and beside each other."""
