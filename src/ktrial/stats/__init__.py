"""From samples to verdicts."""
