"""Settings of hypothesis for all tests: no deadline for an example, as a loaded machine would miss it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("entrepot", deadline=None, max_examples=50)
settings.load_profile("entrepot")
