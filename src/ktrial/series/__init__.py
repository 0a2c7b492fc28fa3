"""What each patch of a series costs, where, and what nothing exercised: `ktrial series`."""
