"""From which size on, and up to how many chips, an operation is compute-bound: in closed form, exact to the last integer."""
