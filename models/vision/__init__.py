"""What a model that sees is shown, and how its coordinates are read."""
