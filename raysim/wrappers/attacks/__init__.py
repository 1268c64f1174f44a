"""Attacks by the names of ``attack.kind``: each file defines ``KIND``."""
