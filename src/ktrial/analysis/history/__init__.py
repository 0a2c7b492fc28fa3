"""Results over kernel releases: series and their change points."""
