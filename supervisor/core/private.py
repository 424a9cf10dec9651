"""Which variables hold secrets, told by their names: what people are warned of, and what is not shown."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|ACCESS_?KEY(?:_ID)?|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|(?<!APPLICATION_)CREDENTIALS?|AUTH)(?:_[0-9]+)?$"
    r"|(?:^|_)SECRET_",
    re.IGNORECASE,
)
#: What stands where a secret would.
HIDDEN = "(hidden)"


def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a key, as far as its name tells."""
    return _WORDS.search(name) is not None
