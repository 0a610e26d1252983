"""The command line: `rooflines COMMAND`, one module per command, loaded when it is used."""
