"""A search for the best values of some options, by Optuna's ask and tell (``python -m raysim.search``)."""
