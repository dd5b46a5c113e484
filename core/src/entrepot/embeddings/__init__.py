"""The embedding models that come with entrepot: local, over HTTP, and one for tests."""
