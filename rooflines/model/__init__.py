"""The model: what an operation costs, how it is split, and how fast a chip serves each resource. No file, no frame, no config."""
