"""Benches that repeat what a paper or a thesis reports."""
