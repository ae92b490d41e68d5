"""Reproduction of RLBackfilling (Kolker-Hicks, Zhang and Dai, PMBS 2023), with additional baselines."""
