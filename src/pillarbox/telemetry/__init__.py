"""What a relay says about itself: listeners to its observations. None of them may raise or block."""
