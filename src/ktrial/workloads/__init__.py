"""What trials run: built-in operations and the user's own commands."""
