"""A live page of one run, read from the run's folder: ``python -m raysim.launch --ui``, ``python -m raysim.ui FOLDER``.

It never writes, imports neither torch nor ray, and loads nothing from outside.
"""
