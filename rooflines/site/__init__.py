"""The site: a static folder of charts, thresholds and chips, from templates."""
