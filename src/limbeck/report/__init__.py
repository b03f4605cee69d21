"""What a release shows to people: the picture grid, the data card and the report page. All of it is post-processing."""
