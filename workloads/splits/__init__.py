"""How samples are divided among clients, and the picture of that in numbers."""
