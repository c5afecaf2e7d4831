"""The OpenAPI document: every route, with bodies, answers and problems."""
