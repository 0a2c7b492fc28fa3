"""Charts as inline SVG, drawn by Altair and vl-convert."""
