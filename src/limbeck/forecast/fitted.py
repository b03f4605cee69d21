"""What `python -m benchmarks.forecast_fit` has fitted; its error is in benchmarks/results/forecast-fit.json."""

COEFFICIENTS: dict[str, dict[str, float]] = {
    "grey": {
        "one": 1.3008,
        "signal": 1.256,
        "classes": -1.5544,
        "size": 0.1953,
        "answers": 1.0447,
        "signal of answers": 0.0829,
    },
    "colour": {
        "one": -0.5002,
        "signal": 0.8832,
        "classes": -1.5544,
        "size": 0.1953,
        "answers": 1.0447,
        "signal of answers": 0.0829,
    },
    "table": {"one": -1.1746, "signal": 0.5749, "classes": -0.5, "size": 0.2, "answers": 1.0, "signal of answers": 0.0},
}
# On the logit: what eight of ten cases lie within.
MARGIN: dict[str, float] = {"grey": 1.48, "colour": 1.48, "table": 0.54}
# Of (kind, method), on the logit beside the default one.
METHODS: dict[tuple[str, str], float] = {
    ("grey", "elixir"): 0.0,
    ("colour", "elixir"): 0.0,
    ("table", "mosaic"): 0.0,
    ("grey", "ldpdc"): -1.87,
    ("colour", "ldpdc"): -1.87,
    ("grey", "dpmerf"): -1.26,
    ("colour", "dpmerf"): -1.26,
    ("grey", "datalens"): -2.64,
    ("colour", "datalens"): -2.64,
    ("grey", "gpate"): -3.94,
    ("colour", "gpate"): -3.94,
}
