"""Geometry of boxes and masks: numbers in, numbers out."""
