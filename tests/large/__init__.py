"""Full tables: every page and every listing with millions of rows (`make test-large`)."""
