"""The vocabulary: values and protocols that every other layer speaks; the standard library and nothing else."""
