"""Files of a run: its folder, tables, checkpoints, locks; and files that anyone may have written, read safely."""
