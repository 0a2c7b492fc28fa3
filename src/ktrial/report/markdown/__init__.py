"""Documents in Markdown."""
