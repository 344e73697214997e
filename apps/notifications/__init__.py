"""The notification system of four audiences: one event in, one notification for each user and channel out."""
