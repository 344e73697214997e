"""Figures, as ratios within one run: machines are noisy, and a number alone means little."""
