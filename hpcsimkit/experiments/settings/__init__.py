"""The form of settings: tables of TOML files and flags, their checks, and the lines of their keys."""
