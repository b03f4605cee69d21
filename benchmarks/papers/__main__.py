"""`python -m benchmarks.papers measure --list` shows every run of every table."""

from benchmarks.papers.command import app
from limbeck.cli.main import run

run(app)
