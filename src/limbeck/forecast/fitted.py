"""What `python -m benchmarks.forecast_fit` has fitted; its error is in benchmarks/results/forecast-fit.json."""

# Of the distance between classes what is kept at best; level and power of the noise, and how that grows.
CURVES: dict[str, dict[str, float]] = {
    "grey first": {"best": 0.77, "level": 34.9, "power": 1.784, "spread": 0.299, "classes": 0.201},
    "grey answers": {"best": 0.896, "level": 65.572, "power": 0.589, "spread": 0.299, "classes": 0.0},
    "colour first": {"best": 0.249, "level": 23.454, "power": 1.784, "spread": 0.299, "classes": 0.201},
    "colour answers": {"best": 0.787, "level": 231.436, "power": 0.589, "spread": 0.299, "classes": 0.0},
    "table": {"best": 0.953, "level": 252.569, "power": 0.753, "spread": 0.0, "classes": 0.0},
}
# The power of the set's size.
SIZE = 0.056
# How far apart classes are taken to lie where nobody says what real records give.
HARDNESS: dict[str, float] = {"grey": 3.8, "colour": 2.1, "table": 1.45}
# What eight of ten sets lie within, in logarithms of the signal and in shares of the distance: nothing said, or said.
MARGIN: dict[str, dict[str, float]] = {
    "grey": {"signal": 1.2, "share": 0.3},
    "colour": {"signal": 1.5, "share": 0.15},
    "table": {"signal": 1.8, "share": 0.2},
}
MARGIN_SAID: dict[str, dict[str, float]] = {
    "grey": {"signal": 1.05, "share": 0.2},
    "colour": {"signal": 1.2, "share": 0.05},
    "table": {"signal": 1.35, "share": 0.1},
}
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
