"""Wake → fetch → send → settle: delivers committed events to their destinations."""
