"""The kinds of workers: proof.py, relaxation.py, search.py, elimination.py; member.py: what those of the core share."""
