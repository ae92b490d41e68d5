"""CuSH: two jointly trained agents, for the choice of the next job from images and for its placement."""
