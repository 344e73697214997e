"""The image, built without an engine and started as its user: `make image`."""
