"""Rules in the place of the mean by the names of ``defense.rule``: each file defines ``KIND``."""
