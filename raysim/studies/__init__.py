"""Studies: tables of runs, kept cell by cell: their files, their cells at work, and what is made of finished cells."""
