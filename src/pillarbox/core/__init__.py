"""The values, protocols and errors that all other packages use. Imports the standard library only."""
