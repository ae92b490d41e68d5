"""Checks of user-defined policies, encoders, rewards and agents."""
