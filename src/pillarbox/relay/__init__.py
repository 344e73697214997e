"""Wake → read → send → settle: what carries committed events to their destinations."""
