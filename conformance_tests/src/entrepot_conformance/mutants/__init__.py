"""Mutants: backends and pieces of the core that break one rule each, to test the suite itself.

A citation counts only if it can fail. So for every rule there is a mutant that breaks this rule, and a test
that cites the rule has to fail on it: ``python -m entrepot_conformance.mutants`` tries them all.
"""

from entrepot_conformance.mutants.model import Mutant, all_mutants

__all__ = ["Mutant", "all_mutants"]
