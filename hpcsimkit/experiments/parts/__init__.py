"""Parts by name: policies, machines, readers, metrics, components of learners; and the trust in their code."""
