"""A run in the process that drives it, this one or an actor's: data, rounds, results."""
