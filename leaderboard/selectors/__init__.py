"""Reads of the site: querysets in, frozen rows out. Lists start at listed(), single pages at
visible_to(user)."""
