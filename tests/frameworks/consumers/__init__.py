"""Consumers of other frameworks and languages: the recipes of the how-to page, as they are printed there."""
