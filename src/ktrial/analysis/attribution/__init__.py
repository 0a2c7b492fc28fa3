"""Which kernel functions, options and settings a difference is made of."""
