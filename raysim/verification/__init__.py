"""Checks a run's folder against its proof: the files as they are, or what a new computation gives."""
