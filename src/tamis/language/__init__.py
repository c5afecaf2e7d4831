"""The subscription language: text in, conditions out, checked and brought to normal form."""

from tamis.language.normal_form import check_size, clauses, expand
from tamis.language.parser import parse
from tamis.language.type_check import check
from tamis.model.printer import to_text

__all__ = ["check", "check_size", "clauses", "expand", "parse", "to_text"]
