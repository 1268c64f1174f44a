"""All of Ray: the session of a run, its driver, the client actors and their pool."""
