"""Tables as workloads: rows of numeric and categorical columns, of which one is the class."""
