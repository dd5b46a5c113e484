"""Tool search: one tool that finds others, instead of hundreds in every prompt."""
