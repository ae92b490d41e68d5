"""Schedulers at no longer longest wait against the strongest heuristics, over logs with queues."""
