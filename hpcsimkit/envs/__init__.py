"""Gymnasium environments for open seats."""
