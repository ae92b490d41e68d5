"""Inspectors and backfillers, alone and in pairs, against the best heuristics under textbook semantics."""
