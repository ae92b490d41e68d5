"""hpcsimkit: simulate how jobs are scheduled on HPC clusters."""

__version__ = "0.1.0"
