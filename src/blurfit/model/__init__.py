"""The model's user: predict, and read what the model protects."""
