"""Everything that a paper needs of its runs in one folder, from which a stranger can repeat each of them."""
