"""Data and models that Python code hands over as objects."""
