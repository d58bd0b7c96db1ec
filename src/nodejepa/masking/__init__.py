"""What is hidden from the context encoder, and augmented views: functions of a graph and a generator."""
