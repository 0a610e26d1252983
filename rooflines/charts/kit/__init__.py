"""The chart kit: text, label placement, themes, drawing and rendering, shared by all charts."""

VEGA_LITE = "6.4"
"""The version of Vega-Lite that draws the charts."""
