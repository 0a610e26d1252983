"""The column dictionary: every column of every table, with its unit and description."""
