"""kubectl against pintle."""


def run(args, report):
    pass
