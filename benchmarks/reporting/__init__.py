"""Reports of a run: tables, plots, the page of the documentation and a section of the README."""
