"""Pure statistics: numbers in, numbers out. Standard library only, as pages import it."""
