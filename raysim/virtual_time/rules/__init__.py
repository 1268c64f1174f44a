"""Timing modes, one file each: the values of ``timing.mode``."""
