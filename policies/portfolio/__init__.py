"""Portfolio scheduling: several orders are simulated ahead, and the best one is followed."""
