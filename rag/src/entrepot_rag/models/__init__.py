"""Chat models: the protocols, one for tests and demos, one over HTTP."""
