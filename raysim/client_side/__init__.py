"""The client's half of a round: what runs in a worker's process, on Ray or in this one. It knows no Ray."""
