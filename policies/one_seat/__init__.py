"""Schedulers with a single seat, to which jobs are offered in a given order."""
