"""Network blocks on sparse products; flat keyword arguments, never a config."""
