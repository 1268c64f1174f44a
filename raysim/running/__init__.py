"""One run from call to end: what is refused before it, its folder, the driver, and what it leaves."""
