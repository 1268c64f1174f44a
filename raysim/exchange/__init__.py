"""Between the driver and its workers: the protocol of a pool, and what travels. It knows no Ray."""
