"""The site: a static folder of pages, charts and data, rendered from templates."""
