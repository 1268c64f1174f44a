"""Image data sets and their splits over clients."""
