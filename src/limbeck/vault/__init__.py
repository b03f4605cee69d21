"""The only code that reads private records, and the book that every answer is paid from."""
