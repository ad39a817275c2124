"""Mathematics: elementary and special functions, arithmetic, transforms."""
