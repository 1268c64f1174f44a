"""Settings of a run: sections, their checks, layers, names of methods and workloads, the command line and its help."""
