"""Scenarios: small PyTorch programs with an independent witness. Each takes a witness.Checks."""


def scenario(slow=False, device=None, variables=None, native=True, needs=(), ranks=1):
    """Marks a function; `device` is its SIMGPU, `variables` are set before PyTorch is loaded, `native` says that
    PyTorch's own allocator is used (others report no blocks), `needs` are modules without which it is skipped. With
    `ranks` it runs in so many processes at once, and takes its rank and the name of a file for their store as well."""
    def mark(function):
        function.is_scenario = True
        function.slow = slow
        function.device = device
        function.variables = variables
        function.native = native
        function.needs = needs
        function.ranks = ranks
        return function
    return mark
