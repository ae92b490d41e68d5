"""Whoever sits on an open seat: for now without learning (random play, replay)."""
