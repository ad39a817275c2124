"""Pure statistics: numbers in, numbers out. What is large is worked out by numpy, imported late."""
