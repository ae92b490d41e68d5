"""Cluster resources: counted nodes, and machines with named resources."""
