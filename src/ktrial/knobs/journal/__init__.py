"""Changes of a system's settings: journaled before they are made, undone afterwards."""
