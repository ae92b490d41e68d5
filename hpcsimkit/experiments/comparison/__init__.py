"""Comparisons of policies: experiments, their runs and results folders, and changed clusters."""
