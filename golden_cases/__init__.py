"""Exact expected values, as JSON data."""
