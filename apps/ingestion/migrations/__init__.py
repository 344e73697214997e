"""Alembic's folder: one file per change of tables.py."""
