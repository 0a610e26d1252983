"""What charts are put together from: text and label placement, themes, drawing and rendering."""
