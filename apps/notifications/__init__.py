"""A notification system for four audiences: each event becomes one notification per user and channel."""
