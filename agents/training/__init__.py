"""Trainers: algorithms that learn the weights of an agent's network."""
