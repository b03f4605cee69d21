"""What can be said of a run before it is paid for, from public numbers alone: what its set is worth and how long it takes."""
