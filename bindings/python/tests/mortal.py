"""A program that something happens to at one of its steps: it is killed there, or another goes on meanwhile."""

from collections.abc import Callable
from typing import Any


class KilledError(BaseException):
    """The program's end."""


class Executioner:
    """Kills at one of the steps: just before it or, if the place is odd, just after it. The dead do nothing more."""

    def __init__(self, at: int) -> None:
        self._left = at

    def step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: object, **named: object) -> Any:
            self._between()
            result = call(*arguments, **named)
            self._between()
            return result

        return called

    @property
    def was_reached(self) -> bool:
        return self._left < 0

    def _between(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise KilledError


class Interrupter(Executioner):
    """Lets another go on at one of these places."""

    def __init__(self, at: int, interruption: Callable[[], None]) -> None:
        super().__init__(at)
        self._interruption = interruption

    def _between(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._interruption()


class Mortal:
    """An object whose every call is a step, and so are the calls of what its methods in `makers` return."""

    def __init__(self, target: Any, executioner: Executioner, *makers: str) -> None:
        self._target = target
        self._executioner = executioner
        self._makers = makers

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value
        if name not in self._makers:
            return self._executioner.step(value)

        def make(*arguments: object, **named: object) -> Any:
            made = self._executioner.step(value)(*arguments, **named)
            return Mortal(made, self._executioner, *self._makers)

        return make

    def __enter__(self) -> "Mortal":
        self._executioner.step(self._target.__enter__)()
        return self

    def __exit__(self, *error: object) -> None:
        self._executioner.step(self._target.__exit__)(*error)
