"""Optional packages, each imported in its one file."""
