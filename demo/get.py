# SPDX-License-Identifier: Apache-2.0
"""get ADDRESS[:PORT] [COUNT]: asks pods of the lab and shows who answered."""

import sys

from lab.client import request
from lab.topology import answers
from show import Screen


def split(text):
    """1.2.3.4, 1.2.3.4:80, [fd00::1]:80 or fd00::1."""
    text = text.removeprefix("http://").rstrip("/")
    if text.startswith("["):
        address, _bracket, port = text[1:].partition("]")
        return address, int(port.lstrip(":") or 80)
    if text.count(":") == 1:
        address, _colon, port = text.partition(":")
        return address, int(port)
    return text, 80


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    address, port = split(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    results = answers(request(address, port, count=count))
    if count == 1:
        (only,) = results
        print(only.error or f"{only.pod} answered; it saw {only.source} port {only.port}")
    else:
        Screen().shares(results)
    return 1 if any(answer.error for answer in results) else 0


if __name__ == "__main__":
    sys.exit(main())
