"""Reinforcement learning: encoders, action masks, rewards and networks; trainers; the agents they produce.

The general parts (encoders, masks, rewards, episodes, networks) combine freely. Trainers implement PPO, A2C,
policy gradients, deep Q-learning and the cross-entropy method, or wrap Stable-Baselines3. Published agents
are in subpackages: RLScheduler, SchedInspector, RLBackfilling, the masked-PPO scheduler, DRAS and CuSH.
"""
