"""Examples, each run by the tests. They import public names only."""
