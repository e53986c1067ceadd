"""From the official releases to local parquet: one converter each, and where the data lie."""
