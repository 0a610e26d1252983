"""The model: operations, costs, shardings, networks, rates, times. No file, frame or config."""
