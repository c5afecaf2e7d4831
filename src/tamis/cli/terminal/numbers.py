"""Numbers as commands print them."""

from __future__ import annotations


def short(value: float) -> str:
    """Three significant digits, and all digits of a large number.

    >>> short(0.01234), short(12.34), short(12345.6), short(0.00001)
    ('0.0123', '12.3', '12,346', '1e-05')
    """
    if value and abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.0123), percent(0.00004), percent(0.99999), percent(1)
    ('1.23%', '0.004%', '>99.9%', '100%')
    """
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.3g}%"


def rate(count: int, seconds: float) -> str:
    """How many a second.

    >>> rate(30, 2), rate(3_000, 2), rate(3_000_000, 2)
    ('15.0/s', '1.5 k/s', '1.50 M/s')
    """
    each = count / max(seconds, 1e-9)
    if each >= 1e6:
        return f"{each / 1e6:.2f} M/s"
    return f"{each / 1e3:.1f} k/s" if each >= 1e3 else f"{each:.1f}/s"


def file_size(bytes: int) -> str:
    """Bytes in the unit that fits.

    >>> file_size(999), file_size(1500), file_size(2 * 10**9)
    ('999 B', '1.5 kB', '2.0 GB')
    """
    number = float(bytes)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def duration(seconds: float) -> str:
    """Seconds in the unit that fits.

    >>> duration(2.5), duration(0.0123), duration(4e-7)
    ('2.5 s', '12.3 ms', '0.4 µs')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def clock(elapsed: float) -> str:
    """Elapsed time.

    >>> clock(9), clock(75), clock(3723)
    ('9 s', '1 min 15 s', '1 h 2 min')
    """
    whole = int(elapsed)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def shortened(text: str, most: int) -> str:
    """A text on one line, with at most `most` letters.

    >>> shortened("price < 5 and price > 3", 12)
    'price < 5 a…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
