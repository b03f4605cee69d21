"""Amounts of money as people write them, read as numbers by a fixed public rule that the schema names.

Whether 1.200 is a thousand and two hundred or a little more than one depends on the country, not on the cell, so there are two
rules, and a column has one of them: `currency` (1,200.50) and `currency-comma` (1.200,50).
"""

from __future__ import annotations

import re

POINT, COMMA = "currency", "currency-comma"
FORMATS = (POINT, COMMA)
LONGEST = 60  # letters of an amount
_SIGNS = "$€£¥₹₽₩₺₴₦₱฿₫₪¢"
# Only known ones: a letter or three and digits may be any code of a part, a ward or a disease.
_CODES = (
    "EUR|USD|GBP|CHF|JPY|CNY|CAD|AUD|NZD|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|TRY|RUB|UAH|INR|IDR|KRW|SGD|HKD|TWD|THB|MYR|PHP|"
    "VND|ZAR|NGN|KES|EGP|MAD|ILS|AED|SAR|QAR|BRL|MXN|ARS|CLP|COP|PEN|Rs|Fr|kr|zł|Kč|Ft|lei|R"
)
_UNIT = rf"(?:(?:US|CA|AU|NZ|A|C|R)?[{_SIGNS}]|(?:{_CODES})\.?)"
_NAMED = re.compile(_UNIT)
_SPACE = "[ \u00a0\u202f\u2009]"


def _rule(group: str, mark: str) -> re.Pattern[str]:
    digits = rf"(?:\d{{1,3}}(?:(?:[{group}']|{_SPACE})\d{{3}})+|\d+)(?:{mark}\d+)?|{mark}\d+"
    gap = f"{_SPACE}?"
    return re.compile(
        rf"(?P<open>\()?(?P<minus>[-+\u2212])?{gap}(?:{_UNIT}{gap})?(?P<after>[-+\u2212])?(?P<digits>{digits})"
        rf"(?:{gap}{_UNIT})?(?(open)\)|)",
        re.ASCII,
    )


_RULES = {POINT: (_rule(",", r"\."), "."), COMMA: (_rule(".", ","), ",")}


def amount(text: str, form: str) -> float:
    """The number of an amount; ValueError if it is none. An amount in brackets is negative, as accountants write it.

    >>> amount("$1,200.50", POINT), amount("1.200,50 EUR", COMMA), amount("(CHF 1'200)", POINT), amount("-3", POINT)
    (1200.5, 1200.5, -1200.0, -3.0)
    >>> amount("1.200", POINT), amount("1.200", COMMA)
    (1.2, 1200.0)
    """
    rule, mark = _RULES[form]
    text = text.strip()
    found = rule.fullmatch(text) if len(text) <= LONGEST else None
    if found is None or (found["minus"] and found["after"]):
        raise ValueError
    whole, _, part = found["digits"].partition(mark)
    number = float(f"{re.sub(r'[^0-9]', '', whole) or '0'}.{part or '0'}")
    sign = found["minus"] or found["after"] or ""
    return -number if (sign in "-\u2212" and sign) or found["open"] else number


def looks_like_money(text: str) -> bool:
    """Whether a cell has more than a plain number: a sign of a currency, a code, or digits in groups.

    >>> [looks_like_money(text) for text in ("$5", "5 EUR", "1,200", "1200.50", "1 200")]
    [True, True, True, False, True]
    """
    return re.fullmatch(r"[-+]?[0-9.]*", text.strip()) is None


def unit_of(text: str) -> str:
    """The sign or code of an amount's currency; "" if it has none.

    >>> [unit_of(text) for text in ("$5", "5 EUR", "(CHF 1'200)", "1,200", "-3")]
    ['$', 'EUR', 'CHF', '', '']
    """
    found = _NAMED.search(text) if len(text) <= LONGEST else None
    return found.group().rstrip(".") if found else ""
