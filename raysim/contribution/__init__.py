"""The contribution of every client to a run's result, by retraining without it."""
