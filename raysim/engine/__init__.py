"""The round loop and its parts: cohorts, client tasks, sums, spilling, evaluation, recovery. It knows no Ray."""
