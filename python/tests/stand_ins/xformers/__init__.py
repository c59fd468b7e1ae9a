"""Stands in for xformers."""
