"""A local web page over a folder of runs: progress, releases side by side, budgets, downloads. It only ever reads."""
