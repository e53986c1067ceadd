"""Replies as a model of a profile would write them: the inverse of parsing."""
