"""Measurements of speed and memory; nothing here is imported by raysim or timed inside a test."""
