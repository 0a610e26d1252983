"""The column dictionary: every table's columns with unit and meaning."""
