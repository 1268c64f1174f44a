"""Federations whose samples are arrays in memory."""
