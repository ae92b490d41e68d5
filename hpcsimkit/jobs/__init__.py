"""Jobs, workloads and the queue of waiting jobs."""
