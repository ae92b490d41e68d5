"""Input and output: reading limits, files, text for terminals, signals."""
