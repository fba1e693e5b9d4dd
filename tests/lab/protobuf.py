# SPDX-License-Identifier: Apache-2.0
"""Objects as an API server writes them, from dictionaries, by the schema that the program has itself.

Nothing is checked, and fields that the schema does not have are left out: a hostile object may say anything. Text in the place of a
message is its bytes (those that are no UTF-8 as surrogates).
"""
import re

FIELD = re.compile(r"^\s*(optional|repeated) (\w+) (\w+) = (\d+);", re.M)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
NUMBERS = ("int32", "int64", "bool")


def varint(value):
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return varint(field << 3 | 2) + varint(len(value)) + value


class Schema:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.messages = {name: [(kind, name_, int(n)) for _, kind, name_, n in FIELD.findall(body)]
                         for name, body in MESSAGE.findall(text)}

    def encode(self, message, values):
        out = b""
        for kind, name, n in self.messages[message]:
            value = values.get(name)
            if value is None:
                continue
            if kind == "MapEntry":
                value = [{"key": key, "value": word} for key, word in value.items()]
            for one in value if isinstance(value, list) else [value]:
                if kind in NUMBERS:
                    out += number(n, int(one))
                else:
                    out += data(n, self.encode(kind, one) if isinstance(one, dict) else one)
        return out


def envelope(kind, content):
    return b"k8s\0" + data(1, data(1, "v1") + data(2, kind)) + data(2, content)


def frame(event, kind, content):
    """One event of a watch."""
    body = data(1, event) + data(2, data(1, envelope(kind, content)))
    return len(body).to_bytes(4, "big") + body
