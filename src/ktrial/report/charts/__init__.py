"""Charts as inline SVG: drawn by Altair and vl-convert, or by hand where each mark has its exact place."""
