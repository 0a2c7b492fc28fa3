"""The path of a key in a study file."""

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the root: `("workloads", 2, "name")`."""
