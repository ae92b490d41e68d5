"""Trainings: their settings, data, environments, runs and results folders."""
