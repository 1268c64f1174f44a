"""Judges whether one group of runs is better than another: paired by seed, under equal budget, or refused."""
