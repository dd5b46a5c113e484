"""Chat memories: the rules M1 to M10, W1 to W4, and what E1 to E5 mean for them."""
