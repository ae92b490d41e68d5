"""Orders learned from a log: searched on its first part, chosen on the second, tested once on the third."""
