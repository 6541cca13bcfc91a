"""Benches of learning: solvers, peers, search indices."""
