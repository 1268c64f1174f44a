"""Virtual time: the order of events that clients' devices make, known without any training."""
