"""Data sets, their splits over clients, models and metrics, which know nothing of raysim."""
