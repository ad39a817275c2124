"""What visitors see, one module for each group of pages."""
