"""Networks that score actions, in numpy and in torch, and their files."""
