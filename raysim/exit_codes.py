"""Exit codes of every command."""

FINISHED = 0
FAILED = 1
REFUSED = 2
"""The request cannot be met: options, data, a folder."""
STOPPED = 130
"""By Ctrl-C."""
