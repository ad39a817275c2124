"""Results as files: versioned tables, each with its columns' meaning, row count and SHA-256."""
