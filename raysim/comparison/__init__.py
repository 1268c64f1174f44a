"""Runs compared with each other: values paired by seed, differences and their tests, as tables in several forms."""
