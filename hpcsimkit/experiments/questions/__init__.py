"""Questions about a workload, each a function: how good is the model, what if, how long, why."""
