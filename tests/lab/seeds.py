# SPDX-License-Identifier: Apache-2.0
"""Which draw a test makes: a fixed one. What fails names its seed; PORTOLAN_SEED=N makes that draw, here or in what `make soak` runs."""
import os
import random

GIVEN = os.environ.get("PORTOLAN_SEED")


def seed(fixed):
    return int(GIVEN or fixed)


def seeds(fixed):
    return [int(GIVEN)] if GIVEN else fixed


def any_seed():
    """For what goes on for as long as it is told: never in a test."""
    return int(GIVEN or random.SystemRandom().randrange(1, 10**9))
