"""A sweep understood: its axes, what each chip can do of it, and its rows as a lazy frame."""
