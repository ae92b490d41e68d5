"""Encoders, masks, rewards and episodes: the sides of a learning problem."""
