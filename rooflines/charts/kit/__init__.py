"""The chart kit: text, label placement, themes, drawing and rendering, shared by all charts."""
