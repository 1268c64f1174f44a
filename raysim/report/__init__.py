"""Pages, pictures, comparisons and tables of studies, made of finished runs."""
