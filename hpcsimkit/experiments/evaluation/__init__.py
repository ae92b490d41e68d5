"""Evaluations: an agent beside baselines on the same jobs, with statistics, choices and explanations."""
