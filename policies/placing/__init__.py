"""Placements, packing and the selection of job sets."""
