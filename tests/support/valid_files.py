"""Valid configs and catalogues of tests/cases/configs, and the values that spoil them."""

from case_files import case, config

CONFIGS = (config("every-key"), config("shapes"))
CHIPS, DTYPES = config("chips"), config("dtypes")
ONE_SWEEP, PLAIN = config("one-sweep"), case("configs/one-sweep")
"""One sweep on chips of its own, as text and as a mapping."""

ODD = case("odd")
LONG = ("9" * 40, "a" * 300, "9x" * 300 + "9", "[" * 5000, "{a: " * 100, "- " * 100, "a, " * 500)
