"""A round of federated averaging: raysim, a bare PyTorch loop, Flower and pfl-research on the same data and models.

``python -m benchmarks.rounds --help``; benchmarks/README.md says what is measured and holds the results. Every system
is one file with a ``main`` that reads a :class:`benchmarks.rounds.task.Task`, trains and writes a
:class:`benchmarks.rounds.task.Result`; it runs in a process, and Flower and pfl-research in an environment, of its own.
"""
