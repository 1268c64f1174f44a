"""Readers of data files that anyone may have made, and files that are kept for the next run."""
