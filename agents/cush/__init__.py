"""CuSH: which job starts, chosen from pictures, and how it is placed; trained together on two seats."""
