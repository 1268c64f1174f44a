"""How the command line ends: signals, exit codes, the last words."""
