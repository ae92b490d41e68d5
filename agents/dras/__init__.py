"""DRAS: a two-level agent that starts jobs, reserves for one, and backfills behind it with one network.

(Fan, Li, Favorite, Singh, Childers, Rich, Allcock, Papka & Lan, "DRAS: Deep Reinforcement Learning for
Cluster Scheduling in High Performance Computing", IEEE TPDS 2022.)
"""
