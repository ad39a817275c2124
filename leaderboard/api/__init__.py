"""What the pages show, as JSON: the same selectors, explicit fields, nothing of its own."""
