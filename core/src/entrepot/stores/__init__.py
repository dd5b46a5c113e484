"""Stores that come with the core."""
