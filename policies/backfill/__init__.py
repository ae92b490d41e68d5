"""Backfillers."""
