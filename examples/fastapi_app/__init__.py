"""FastAPI with the relay in the lifespan: requests record events, the relay in the same process delivers them."""
