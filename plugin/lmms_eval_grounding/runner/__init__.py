"""The golden cases as a test of any implementation: asking it, judging it, reporting."""
