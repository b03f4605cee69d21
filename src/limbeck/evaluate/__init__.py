"""What a synthetic set is worth: accuracy of models trained on it."""
