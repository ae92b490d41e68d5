"""Cluster resources: homogeneous nodes, and machines with named resources."""
