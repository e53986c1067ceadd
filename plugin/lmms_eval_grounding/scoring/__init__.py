"""Scoring without lmms-eval: predictions and targets in, numbers out."""
