"""Side by side with other packages."""
