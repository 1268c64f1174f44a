"""The mathematics of aggregation: pure functions of arrays, which know nothing of raysim."""
