"""Stores of other tools that keep runs, one file each; the file's name is the one that ``--observer`` takes."""
