"""Metrics: per-sample records in, corpus numbers out; no text, no host."""
