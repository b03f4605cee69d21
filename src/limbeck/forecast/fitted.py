"""What `python -m benchmarks.forecast_fit` has fitted; its error is in benchmarks/results/forecast-fit.json."""

# Of the distance between classes what is kept at best; level and power of the noise, and how it grows with the numbers.
CURVES: dict[str, dict[str, float]] = {
    "grey first": {"best": 0.75, "level": 22.211, "power": 1.839, "spread": 0.169, "classes": 0.891},
    "grey answers": {"best": 0.892, "level": 112.791, "power": 0.991, "spread": 0.169, "classes": 0.0},
    "colour first": {"best": 0.243, "level": 29.047, "power": 1.839, "spread": 0.169, "classes": 0.891},
    "colour answers": {"best": 0.737, "level": 168.84, "power": 0.991, "spread": 0.169, "classes": 0.0},
    "table": {"best": 0.922, "level": 348.22, "power": 0.708, "spread": 0.233, "classes": 0.0},
}
# The power of the set's size.
SIZE = 0.05
# How far apart classes are taken to lie where nobody says what real records give.
HARDNESS: dict[str, float] = {"grey": 3.85, "colour": 2.05, "table": 1.4}
# What eight of ten cases lie within: where nothing is said, and where it is.
MARGIN: dict[str, float] = {"grey": 0.74, "colour": 0.26, "table": 0.29}
MARGIN_SAID: dict[str, float] = {"grey": 0.47, "colour": 0.25, "table": 0.25}
# Of (kind, method): the share of the distance that the default one keeps.
METHODS: dict[tuple[str, str], float] = {
    ("grey", "elixir"): 1.0,
    ("colour", "elixir"): 1.0,
    ("table", "mosaic"): 1.0,
    ("grey", "ldpdc"): 0.73,
    ("colour", "ldpdc"): 0.73,
    ("grey", "dpmerf"): 0.83,
    ("colour", "dpmerf"): 0.83,
    ("grey", "datalens"): 0.6,
    ("colour", "datalens"): 0.6,
    ("grey", "gpate"): 0.38,
    ("colour", "gpate"): 0.38,
}
