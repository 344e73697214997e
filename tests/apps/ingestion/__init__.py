"""The ingestion service as its users meet it: processes, HTTP, SQL, a broker."""
