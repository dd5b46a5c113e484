"""The tests of the suite. What a test expects is what the contract says; each cites its rule."""
