"""What a run writes: its folder, tables, checkpoints, locks; and files that anyone may have written, read safely."""
