"""Kernels asked alone: attention, experts, norms, optimizers, collectives, and chains."""
