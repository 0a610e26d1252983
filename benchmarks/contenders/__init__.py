"""The same rows with other tools.

The formulas of the matmul are hand-written in the cheapest form for each tool: terms without B are
computed once.
"""
