"""Results of a run, and their metrics."""
