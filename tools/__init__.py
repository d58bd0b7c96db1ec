"""What builds the website, its figures, the notebooks and the release; nothing that the package needs."""
