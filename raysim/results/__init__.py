"""A run's folder read back: its tables, what an accuracy cost, and the trained model."""
