"""What reports say in words and rows, whatever they are rendered to."""
