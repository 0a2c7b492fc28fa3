"""A Gaussian process as the model of what was measured."""
