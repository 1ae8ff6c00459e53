"""Mutants of the kernels and of the host's side of them."""

from mutants import of

HOST = "tests/kernels/test_host.py"
DRAWS = "tests/kernels/test_interpreter.py -k test_draws"

MUTANTS = [
    *of(
        "kernels/_present.py",
        HOST,
        (
            "gradients of another format pass",
            "list(map(_FORMAT, grads)) == self._formats",
            "True",
        ),
        (
            "gradients in another order pass",
            "list(map(Tensor.stride, grads)) == self._layouts",
            "True",
        ),
        (
            "gradients that no longer lie well pass",
            "and _aligned(addresses) == self._aligned",
            "",
        ),
        (
            "who has a gradient is not looked at",
            "        if type(None) in set(map(type, grads)):\n            return None\n",
            "        grads = [p if g is None else g for p, g in zip(self.params, grads)]\n",
        ),
    ),
    *of(
        "kernels/_moving.py",
        HOST,
        (
            "a captured table serves other steps too",
            "        self._last = None  # the capture has not filled the table of other steps\n",
            "        self._table = table\n",
        ),
        (
            "gradients in the order of the groups",
            "[addresses[place] for place in self._order]",
            "addresses",
        ),
    ),
    *of(
        "kernels/_launch.py",
        HOST,
        ("launched on another stream", "stream=stream)", "stream=None)"),
        (
            "the table of the first launch for ever",
            "        self._values[self._place] = moving.data_ptr()\n",
            "",
        ),
    ),
    *of(
        "kernels/gpu/_select.py",
        DRAWS,
        (
            "an exponent that went astray is believed",
            "tl.where(astray, ASTRAY, 0)",
            "tl.where(astray, 0, 0)",
        ),
    ),
]
