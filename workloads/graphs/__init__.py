"""Graph data sets and what is computed of their graphs."""
