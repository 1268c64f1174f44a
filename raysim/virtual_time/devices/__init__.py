"""Clients' devices in virtual time: speeds, bandwidths, availability, from presets or traces."""
