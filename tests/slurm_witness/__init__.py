"""A real Slurm as a witness; see `tests.slurm_witness.__main__`."""
