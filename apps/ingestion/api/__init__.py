"""HTTP: bodies and paths, problems, correlation ids. Nothing here opens a transaction."""
