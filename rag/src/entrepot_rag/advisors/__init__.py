"""Advisors: what stands around the model."""
