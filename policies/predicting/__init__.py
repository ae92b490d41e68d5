"""Predictors of run times, which learn from the jobs that have ended."""
