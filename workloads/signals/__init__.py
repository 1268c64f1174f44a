"""Workloads of sensors' signals."""
