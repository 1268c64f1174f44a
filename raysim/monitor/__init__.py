"""Views of a run while it goes on: progress in the terminal, the status file, traces and profiles."""
