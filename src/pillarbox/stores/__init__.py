"""Where messages wait: one folder per engine, the same file names in each."""
