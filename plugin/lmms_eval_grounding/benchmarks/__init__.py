"""The benchmarks as lmms-eval tasks: what the YAML files point to."""
