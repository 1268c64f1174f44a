"""A run once more with one change: what would have been without a client, with another setting or other streams."""
