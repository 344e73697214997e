"""The endpoints: one module per resource, with one function that creates its router."""
