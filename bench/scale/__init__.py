"""Benches of size: memory, threads, set-up, long runs, limits."""
