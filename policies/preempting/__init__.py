"""Preemption: whole schedulers that plan anew at every event, and preemptors of a pipeline."""
