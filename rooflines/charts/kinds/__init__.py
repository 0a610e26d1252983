"""One file per chart: its frame, its drawing, what it needs, and the value that says so, `CHART`.

A module here whose name begins with that of a chart's file, such as `roofline_labels`, is part of
that chart.
"""
