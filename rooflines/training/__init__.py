"""Training steps: parallelism plan, memory per stage, kernels and their works, exact."""
