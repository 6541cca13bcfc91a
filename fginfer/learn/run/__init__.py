"""Training runs: the loop with its limits and log, interrupts, checkpoints."""
