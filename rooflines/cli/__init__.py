"""Command line: `rooflines COMMAND`, one module per command, loaded on use."""
