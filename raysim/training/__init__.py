"""Local training of one client: the loop, the optimizers, the number format."""
