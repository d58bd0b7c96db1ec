"""Every table of a study as data: pure functions of its records; shared has what several of them need."""
