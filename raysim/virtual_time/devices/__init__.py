"""What clients' devices are like in virtual time: speeds, bandwidths, availability, from presets or traces."""
