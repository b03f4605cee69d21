"""What `python -m benchmarks.forecast_fit` has fitted; its error is in benchmarks/results/forecast-fit.json."""

# Of the distance between classes what is kept at best; level and power of the noise, and how that grows.
CURVES: dict[str, dict[str, float]] = {
    "grey first": {"best": 0.756, "level": 31.196, "power": 1.815, "spread": 0.36, "classes": 0.384},
    "grey answers": {"best": 0.899, "level": 118.598, "power": 1.0, "spread": 0.36, "classes": 0.0},
    "colour first": {"best": 0.239, "level": 22.462, "power": 1.815, "spread": 0.36, "classes": 0.384},
    "colour answers": {"best": 0.741, "level": 133.264, "power": 1.0, "spread": 0.36, "classes": 0.0},
    "table": {"best": 0.937, "level": 562.777, "power": 0.684, "spread": 0.351, "classes": 0.0},
}
# The power of the set's size.
SIZE = 0.037
# How far apart classes are taken to lie where nobody says what real records give.
HARDNESS: dict[str, float] = {"grey": 3.5, "colour": 2.05, "table": 1.45}
# What eight of ten cases lie within: where nothing is said, and where it is.
MARGIN: dict[str, float] = {"grey": 0.76, "colour": 0.26, "table": 0.32}
MARGIN_SAID: dict[str, float] = {"grey": 0.71, "colour": 0.25, "table": 0.29}
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
