"""The effective settings: an option before a variable, before the file, before the default."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from tamis.broker.setting import Declared
from tamis.errors import SettingError, suggestion
from tamis.service.configuration.kinds import Kind, kind_of
from tamis.service.settings import Settings

PREFIX = "TAMIS_"
FILE = f"{PREFIX}CONFIG"  # the path of the file, if no option names it
_DEFAULT = "default"


class Setting(NamedTuple):
    """One setting, as its declaration says."""

    name: str  # of the option and of the key, such as keep-events
    place: tuple[str, ...]  # its fields, such as ("limits", "events")
    kind: Kind
    default: Any
    declared: Declared

    @property
    def row(self) -> str:
        """Its row in the table of the docs."""
        return f"| `{self.name}` | {self.shown_default} | {self.declared.help} |"

    @property
    def shown_default(self) -> str:
        """The default for people; a dash without a default."""
        shown = self.show(self.default)
        return "–" if shown in (None, "[]") else f"`{shown}`"

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return PREFIX + self.name.upper().replace("-", "_")

    def show(self, value: Any) -> str | None:
        """A value as TOML has it; None if it is not shown."""
        if value is None or self.declared.secret:
            return None
        return self.kind.show(value)

    def read(self, text: str, source: str) -> Any:
        """The value that a text means; `source` is for the message."""
        return self._checked(text, source, self.kind.read)

    def accept(self, value: Any, source: str) -> Any:
        """The value that a file holds."""
        return self._checked(value, source, self.kind.accept)

    def _checked(self, given: Any, source: str, read: Any) -> Any:
        try:
            value = read(given)
            size = value.total_seconds() if isinstance(value, timedelta) else value
            if self.declared.least is not None and size < self.declared.least:
                raise ValueError(f"is less than {self.declared.least}")
        except ValueError as why:
            shown = "the value" if self.declared.secret else repr(given)
            raise SettingError(f"{source}: {shown} {why}") from None
        return value


class Configuration(NamedTuple):
    """Settings, and where each came from."""

    settings: Settings
    sources: dict[str, str]  # by the names of settings
    warnings: list[str]

    def lines(self) -> Iterator[str]:
        """All settings as a file that gives the same, without secrets."""
        for each in all_settings():
            value, source = _value(self.settings, each.place), self.sources[each.name]
            shown = each.show(value)
            if shown is not None:
                yield f"{each.name} = {shown}  # {source}"
            else:
                what = "not set" if value is None else "hidden"
                yield f"# {each.name}: {what}  # {source}"


@cache
def all_settings() -> tuple[Setting, ...]:
    """Every setting, in the order of their declarations."""
    return tuple(_settings(Settings, (), ""))


def _settings(kind: type, place: tuple[str, ...], prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(kind)
    for each in fields(kind):
        here = (*place, each.name)
        if "group" in each.metadata:
            yield from _settings(hints[each.name], here, f"{prefix}{each.metadata['group']}-")
        else:
            yield _setting(each, here, prefix, hints[each.name])


def _setting(declaration: Field[Any], place: tuple[str, ...], prefix: str, hint: Any) -> Setting:
    name = prefix + declaration.name.replace("_", "-")
    declared: Declared = declaration.metadata["setting"]
    return Setting(name, place, kind_of(hint), declaration.default, declared)


def configure(
    options: Mapping[str, Any], environment: Mapping[str, str], file: Path | None
) -> Configuration:
    """The effective settings. `options` has those that were given, by the names of settings."""
    if file is None and environment.get(FILE):
        file = Path(environment[FILE])
    held = {} if file is None else _read_file(file)
    settings, sources = Settings(), {}
    for each in all_settings():
        if each.name in options:
            value, source = options[each.name], f"option --{each.name}"
        elif environment.get(each.variable):
            source = f"variable {each.variable}"
            value = _from_variable(each, environment[each.variable], source)
        elif file is not None and each.name in held:
            source = f"{file}: {each.name}"
            value = _beside(file, each.accept(held[each.name], source))
        else:
            sources[each.name] = _DEFAULT
            continue
        settings, sources[each.name] = _with(settings, each.place, value), source
    return Configuration(settings, sources, list(_unknown_variables(environment)))


def _read_file(path: Path) -> dict[str, Any]:
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as why:
        raise SettingError(f"{path}: cannot be read: {why.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise SettingError(f"{path}: is not TOML: {why}") from None
    known = {each.name for each in all_settings()}
    for name in held:
        if name not in known:
            raise SettingError(f"{path}: unknown key {name!r}{suggestion(name, known)}")
    return held


def _from_variable(setting: Setting, text: str, source: str) -> Any:
    if setting.kind.many:  # commas stand between the values
        return tuple(each.strip() for each in text.split(",") if each.strip())
    return setting.read(text, source)


def _beside(file: Path, value: Any) -> Any:
    """A path in a file is relative to the folder of the file."""
    return file.parent / value if isinstance(value, Path) else value


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like settings with a typo. Others may belong to something else."""
    known = {each.variable.removeprefix(PREFIX) for each in all_settings()}
    known |= {"CONFIG", "KEY", "SERVER"}  # the last two are for those who call
    for name in sorted(environment):
        rest = name.removeprefix(PREFIX)  # which all have in common
        hint = suggestion(rest, known) if rest != name and rest not in known else ""
        if hint:
            yield f"the variable {name} is not a setting{hint}"


def _value(settings: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        settings = getattr(settings, name)
    return settings


def _with(settings: Any, place: tuple[str, ...], value: Any) -> Any:
    """Settings with one value replaced, also within groups."""
    name, *rest = place
    inner = value if not rest else _with(getattr(settings, name), tuple(rest), value)
    return replace(settings, **{name: inner})
