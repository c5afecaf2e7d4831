"""Operators that come with tamis: places, text, pictures, ontologies, and stand-ins for drones.

Each pack has an extra for the libraries that it needs. A pack is imported when a condition first
names one of its operators.
"""
