"""`pillarbox bench`: how fast a relay is on the user's own store and transport, and which part limits it."""
