"""Results for other programs: what --json prints, and what a site keeps beside its pages."""
