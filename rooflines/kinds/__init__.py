"""Kinds of kernels: attention, experts, norms, optimizers, collectives; chains."""
