"""What commands run: a study, a search, a bisection, an explanation; and what is told meanwhile."""
