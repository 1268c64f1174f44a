"""raysim's virtual time beside APPFL's ``vsim``: ``python -m benchmarks.vsim``."""
