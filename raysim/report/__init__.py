"""Pages, pictures and comparisons, made of finished runs."""
