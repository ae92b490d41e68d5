"""Parts by name: policies, machines, readers, metrics, components of learners; the trust in their code."""
