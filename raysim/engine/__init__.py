"""The driver's half of a round: plan, cohorts, sums, spilling, evaluation, checkpoints, recovery. It knows no Ray."""
