"""Wrappers between clients and server, around any method whose server takes the weighted mean of updates."""
