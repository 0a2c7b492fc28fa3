"""Plain data: factors, levels, designs, trials, samples, kernels, verdicts. No input or output."""
