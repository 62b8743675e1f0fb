"""Errors, each of one line."""


class PintleError(Exception):
    """What went wrong, and what to do."""


class ResponseError(PintleError):
    """An error of the API."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
