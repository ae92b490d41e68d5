"""The masked-PPO scheduler: a job and its machine, chosen at once under CPU, GPU and memory limits."""
