"""Whole applications on Pillarbox, to be copied: each uses public names only."""
