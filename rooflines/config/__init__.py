"""The typed schema of a config, and the sizes of an axis."""
