"""How large and how long a run of measurements is."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Setting:
    """The sizes of one run. The defaults are what the goals are stated for."""

    seed: int = 1
    matchers: tuple[str, ...] = ()  # none named: all that are registered
    seconds: float = 1.0  # for one measurement that can be made shorter
    repeats: int = 5
    conditions: int = 5_000  # texts to parse
    load_subscriptions: int = 1_000_000
    load_repeats: int = 3
    text_subscriptions: int = 20_000
    arrow_events: int = 1_000_000
    dict_events: int = 10_000
    imports: int = 7
    match_subscriptions: int = 100_000
    batch: int = 1_000
    changes: int = 1_000

    def quick(self) -> Setting:
        """The same measurements, small: to see that they work, not to quote."""
        return replace(
            self,
            seconds=0.02,
            repeats=2,
            conditions=50,
            load_subscriptions=1_000,
            load_repeats=1,
            text_subscriptions=200,
            arrow_events=1_000,
            dict_events=100,
            imports=1,
            match_subscriptions=500,
            batch=20,
            changes=20,
        )
