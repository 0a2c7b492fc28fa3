"""What is measured: one module a subject, each with a function `rows`. A new file here is a new subject."""
