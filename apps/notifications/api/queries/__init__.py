"""All SQL statements of the API. Each method is one transaction. Routes contain no SQL, and this package no HTTP."""
