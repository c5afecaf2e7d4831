"""Signatures and docstrings as Markdown, for the references that are made of them."""

import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ForwardRef

_ARGUMENT = re.compile(r"^(?:    )?(\w+): ", re.MULTILINE)


def signature_text(name: str, function: Callable[..., Any]) -> str:
    """A signature without `self`, for readers."""
    signature = inspect.signature(function)
    parts: list[str] = []
    last = None
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        if last == each.POSITIONAL_ONLY != each.kind:
            parts.append("/")
        if each.kind is each.KEYWORD_ONLY and last not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            parts.append("*")
        last = each.kind
        stars = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD)
        kind = _kind(each.annotation)
        shown = f"{stars}{each.name}: {kind}" if kind and not stars else f"{stars}{each.name}"
        if each.default is not each.empty:
            shown += f" = {_value(each.default)}"
        parts.append(shown)
    gives = re.sub(r"^ServiceCall\[(.*)\]$", r"\1", _kind(signature.return_annotation))
    made = f"{name}({', '.join(parts)})"
    return made if inspect.isclass(function) or not gives else f"{made} -> {gives}"


def _kind(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _value(default: Any) -> str:
    if default == timedelta(days=1):
        return "one day"
    shown = repr(default)
    return "…" if shown.startswith("<") else shown  # made anew for each call


def paragraphs(thing: Any) -> list[str]:
    """The paragraphs of a docstring, each on one line."""
    return [" ".join(part.split()) for part in (inspect.getdoc(thing) or "").split("\n\n")]


def markdown(thing: Any) -> list[str]:
    """The docstring of a thing as blocks of Markdown: examples are code, arguments are a list."""
    return [_block(part) for part in (inspect.getdoc(thing) or "").split("\n\n") if part.strip()]


def _block(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    "):
        return text
    if text.startswith("Args:\n"):
        _, *rest = _ARGUMENT.split(text.removeprefix("Args:\n"))
        told = zip(rest[::2], rest[1::2], strict=True)
        return "\n".join(f"- `{name}`: {' '.join(meaning.split())}" for name, meaning in told)
    return " ".join(text.split())
