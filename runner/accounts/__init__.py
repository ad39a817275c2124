"""Who sends: accounts' API keys, how much they may have judged a day, and their own page."""
