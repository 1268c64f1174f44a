"""Ways to draw a round's clients, one file each: the values of ``schedule.sampling``."""
