"""The subscription language: text to conditions, type check, normal form, and dialects."""

from tamis.language.dialects.registry import read
from tamis.language.normal_form import check_size, clauses, expand
from tamis.language.parser import parse
from tamis.language.type_check import check
from tamis.model.printer import to_text

__all__ = ["check", "check_size", "clauses", "expand", "parse", "read", "to_text"]
