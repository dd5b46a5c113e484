"""What a backend does when its server fails: E1, E2, E4."""
