"""Published data sets: where they come from, and how their files become what the workloads read."""
