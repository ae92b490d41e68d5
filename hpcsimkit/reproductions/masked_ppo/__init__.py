"""The masked-PPO scheduler (joint choice of job and machine, K = 10) done again on Beocat's logs."""
