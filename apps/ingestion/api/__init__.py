"""HTTP: bodies and paths, problems, correlation. Nothing here opens a transaction."""
