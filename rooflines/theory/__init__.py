"""Operations as einsums, shardings, collectives, polynomials, kernels, rates, times."""
