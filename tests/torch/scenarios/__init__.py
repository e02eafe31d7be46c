"""Scenarios: small PyTorch programs with an independent witness. Each takes a witness.Checks."""


def scenario(slow=False, device=None, variables=None):
    """Marks a function; `device` is its SIMGPU, `variables` are set before PyTorch is loaded."""
    def mark(function):
        function.is_scenario = True
        function.slow = slow
        function.device = device
        function.variables = variables
        return function
    return mark
