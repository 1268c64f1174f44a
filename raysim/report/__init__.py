"""What is made of finished runs: pages, pictures, comparisons, tables of studies."""
