# SPDX-License-Identifier: Apache-2.0
"""What tests say about answers."""

import math
from collections import Counter


def describe(answers):
    return Counter(answer.error or f"{answer.pod} saw {answer.source}" for answer in answers)


def served(answers):
    """All requests were answered; by which pods?"""
    assert answers, "no request was made"
    assert not any(answer.error for answer in answers), describe(answers)
    return {answer.pod for answer in answers}


def sources(answers):
    """All requests were answered; which client addresses did the pods see?"""
    served(answers)
    return {answer.source for answer in answers}


def errors(answers):
    """No request was answered; how did they fail?"""
    assert answers, "no request was made"
    assert all(answer.error for answer in answers), describe(answers)
    return {answer.error for answer in answers}


def refused_at_once(answers, family, proto):
    """No answer to any of them, and no waiting for it: the quickest counts, since others on this machine have their work, too.

    Where a link has no latency at all, the kernel loses an ICMPv6 error because the connecting socket is still
    locked by its own connect(); the error of the second SYN, after one second, is the first to be seen.
    """
    limit = 2 if (family, proto) == (6, "TCP") else 1
    return errors(answers) <= {"refused", "prohibited"} and min(answer.seconds for answer in answers) < limit


def names(pods):
    return {pod.name for pod in pods}


def chi_square(counts, expected):
    return sum((count - expected) ** 2 / expected for count in counts)


def chi_square_tail(value, freedom):
    """The chance of a larger value. Closed form for an even number of degrees of freedom."""
    assert freedom % 2 == 0
    return math.exp(-value / 2) * sum((value / 2) ** k / math.factorial(k) for k in range(freedom // 2))


def evenly_spread(answers, pods):
    """Whether the shares are those of a fair choice. A fair one fails once in 10^10 runs."""
    assert served(answers) == names(pods), describe(answers)
    counts = Counter(answer.pod for answer in answers)
    value = chi_square(counts.values(), len(answers) / len(pods))
    return chi_square_tail(value, len(pods) - 1) > 1e-10
