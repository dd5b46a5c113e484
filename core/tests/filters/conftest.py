"""Settings of the filter tests."""

from __future__ import annotations

from hypothesis import settings

# A machine that is busy with other things is no reason to fail; the fuzz, marked slow, tries many more examples.
settings.register_profile("entrepot", deadline=None, max_examples=50)
settings.load_profile("entrepot")
