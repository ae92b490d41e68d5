"""Slurm as configured: its files, its priorities, its limits and its two scheduling loops."""
