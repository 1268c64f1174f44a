"""Text as a workload: the next character after a window of characters."""
