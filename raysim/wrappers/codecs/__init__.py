"""Codecs by the names of ``compression.kind``: each file defines ``KIND``."""
