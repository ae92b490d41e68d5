"""Policies chosen on the past of a log, and tested once on its end."""
