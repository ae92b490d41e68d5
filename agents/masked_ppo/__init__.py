"""The masked-PPO scheduler: joint choice of a job and its machine under CPU, GPU and memory limits."""
