"""Four grounding benchmarks for lmms-eval, and the corpus that proves their scores."""

__version__ = "0.1.0"
