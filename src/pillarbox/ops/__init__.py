"""Running it: settings, wiring, the command line. The only layer that imports everything and reads the environment."""
