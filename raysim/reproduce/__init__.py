"""Tables of papers, made again by one command: small, as these pages keep them, or at the published size."""
