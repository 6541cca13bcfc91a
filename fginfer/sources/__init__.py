"""Sources of the public oracles, see fginfer.oracles: tables, rankings, inner products."""
