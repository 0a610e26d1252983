"""One operation on one chip, explained: what binds it, and what would change that."""
