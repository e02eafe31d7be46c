"""What the tests of traced programs share: comparisons that are counted, and failures that are kept."""


class ProgramTest:
    """The base of a test with command-line options; says at the end what differed."""

    LONGEST = 600  # characters of a value that are shown

    def __init__(self, options):
        self.options = options
        self.failures = []
        self.checks = 0

    def check(self, what, got, expected):
        self.checks += 1
        if got != expected:
            self.failures.append(f"{what}: got {str(got)[:self.LONGEST]}, expected {str(expected)[:self.LONGEST]}")
