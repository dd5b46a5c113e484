"""Vector stores: the rules D1 to D10, F1 to F10, S1 to S9, T1, T2, and what E1 to E5 mean for them."""
