"""A step of training: how it is laid out, its memory, its kernels and their times, exact."""
