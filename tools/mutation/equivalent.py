"""Mutants that were read and say the same as longboat: the digest in their name, and the reason.

They are survivors that nothing could find: what they change cannot be seen from outside, or is not
promised.
"""

EQUIVALENT: dict[str, str] = {
    "7e31a517": "two optional fields change places; every use names them",
    "37a61149": "a deadline that is reached to the nanosecond",
    "f614ffa0": "two attributes are set in the other order",
    "c15a6a7c": "git's maintenance never runs in a repository of that size",
    "6678db6a": "tokens have gaps, and still grow",
    "490d45c2": "a wait may be a second longer",
    "3116b45b": "two statements that do not depend on each other change places",
    "00984b73": "an empty payload is no JSON, which gives the same empty answer",
    "5028b151": "the descriptor is never 0",
    "7d720ed4": "a courtesy that may fail, as its text says",
    "e0453c49": "a buffer of another size",
    "b15f1e35": "two optional fields change places; every use names them",
    "382207be": "a note for the log",
    "79d17fc9": "a pipe that is never full",
    "8dc4a6b0": "a descriptor of a process that ends at once",
    "3927244f": "the encoding is the default where it runs",
    "873cb5f7": "a descriptor of a process that ends at once",
    "59eabd1b": "a descriptor of a process that ends at once",
    "bd5ee5bc": "a task that is always there",
    "61da549e": "the time in a line of the log",
    "7a8ddd98": "only a plant gets there",
    "5e6e8086": "a pause of half a minute may be a second longer",
    "35465681": "nothing follows in the loop",
    "63950fd4": "two statements that do not depend on each other change places",
    "16da4a52": "a random label that is longer",
    "4baed0bc": "two statements that do not depend on each other change places",
}
