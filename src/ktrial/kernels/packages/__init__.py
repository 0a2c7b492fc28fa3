"""A distribution's packages: apt, and which releases it holds."""
