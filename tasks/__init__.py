"""Task definitions of the benchmarks: YAML and prompts only."""
