"""Pages of the reference that are generated from the code, one module each."""
