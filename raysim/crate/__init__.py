"""Runs as an RO-Crate: their files with digests, and in one metadata file the software, settings and data behind them.

An RO-Crate is a folder with a file ``ro-crate-metadata.json`` (JSON-LD) that repositories of research data read. These
follow the profile Process Run Crate 0.5 (https://w3id.org/ro/wfrun/process/0.5): an action a run, which has taken data
and settings and made files.
"""
