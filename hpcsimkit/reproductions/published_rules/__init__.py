"""Effects of the rules of published simulators on published numbers, without trainings."""
