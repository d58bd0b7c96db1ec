"""nodejepa."""
