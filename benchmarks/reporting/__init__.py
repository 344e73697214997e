"""From a run to what people read: tables, plots, the page of the documentation and a section of the README."""
