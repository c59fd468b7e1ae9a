"""Which calls of many are judged."""

from __future__ import annotations

import random


class Sampling:
    """
    Says of each call whether it is judged, and counts those that are left out.

    With `every` one call of each `every` calls is judged, drawn anew for each: a fixed step would meet the same layers of a model
    again and again. `sample` is a probability for each call, `most` a number of calls. The first call is judged always.
    """

    def __init__(
        self,
        most: int | None = None,
        sample: float = 1.0,
        every: int | None = None,
        seed: int | None = None,
    ) -> None:
        if not 0 < sample <= 1:
            raise ValueError(f"sample is {sample}; give a probability above 0, up to 1")
        if most is not None and most < 1:
            raise ValueError(f"most_calls is {most}; give 1 or more, or None for all")
        if every is not None and (isinstance(every, bool) or int(every) != every or every < 1):
            raise ValueError(f"every is {every}; give a whole number, 1 or more")
        if every is not None and sample != 1:
            raise ValueError("sample is given beside every; give one of them")
        #: Calls that were left out.
        self.left_out = 0
        #: Calls that were met.
        self.seen = 0
        #: Calls that were chosen and could be judged.
        self.taken = 0
        self._most = most
        self._sample = sample
        self._every = None if every is None else int(every)
        self._chosen = 0
        self._random = random.Random(seed or 0)

    @property
    def is_of_a_loop(self) -> bool:
        """Whether calls of a long run are sampled: `every` was given."""
        return self._every is not None

    def wants(self) -> bool:
        """Whether the call that is met now is to be judged."""
        number = self.seen
        self.seen += 1
        wanted = self._is_within(number)
        self.left_out += not wanted
        return wanted

    def _is_within(self, number: int) -> bool:
        is_drawn = self._is_drawn(number)
        if self._most is not None and self.taken >= self._most:
            return False
        # The first that can be, so that there is a verdict; where none of the first block can be, others are not all tried.
        is_first = self.taken == 0 and (self._every is None or number < self._every)
        return is_drawn or is_first

    def _is_drawn(self, number: int) -> bool:
        if self._every is None:
            return self._random.random() < self._sample
        place = number % self._every
        if place == 0 and number > 0:
            self._chosen = self._random.randrange(self._every)
        return place == self._chosen
