"""BackendBench's evaluation with attention judged, on PyTorch's operator for the CPU."""

import unittest
from types import SimpleNamespace

import torch

try:
    import judged_attention  # it replaces BackendBench's evaluation
    from BackendBench import eval as evaluation
except ImportError as error:
    raise unittest.SkipTest(f"{error}: install BackendBench from its repository") from error

FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
PLAIN = torch.ops.aten.scaled_dot_product_attention.default


def test(*args, rows=20, keys=30, **kwargs):
    draw = torch.Generator().manual_seed(1)
    sizes = ((2, 4, rows, 32), (2, 4, keys, 32), (2, 4, keys, 32))
    return SimpleNamespace(args=[*(torch.randn(size, generator=draw) for size in sizes), *args], kwargs=kwargs)


TESTS = [test(), test(0.0, True), test(0.0, False, scale=0.3), test(attn_mask=torch.randn(20, 30))]


def slightly_more(*args, **kwargs):
    """0.3 % too much, which allclose does not see."""
    out, lse = FLASH(*args, **kwargs)
    return out * 1.003, lse


class Judged(unittest.TestCase):
    def test_what_is_right_passes(self):
        score, results = evaluation.eval_correctness(FLASH, FLASH, TESTS)
        self.assertEqual((score, {one.error_msg for one in results}), (1, {""}))
        score, _ = evaluation.eval_correctness(PLAIN, PLAIN, [test(None, 0.0, True), test(torch.rand(20, 30) < 0.7)])
        self.assertEqual(score, 1)

    def test_what_allclose_does_not_see_is_found(self):
        for one in TESTS:
            self.assertTrue(judged_attention.usual(FLASH, slightly_more, one).is_correct)
            result = evaluation.eval_correctness_test(FLASH, slightly_more, one)
            self.assertFalse(result.is_correct)
            self.assertTrue(result.error_msg.startswith("FAIL"))

    def test_the_lse_is_judged_too(self):
        def in_base_2(*args, **kwargs):
            out, lse = FLASH(*args, **kwargs)
            return out, lse / torch.tensor(2.0).log()

        self.assertIn("LSE", evaluation.eval_correctness_test(FLASH, in_base_2, TESTS[0]).error_msg)

    def test_what_cannot_be_judged_says_so(self):
        with self.assertLogs(level="WARNING"):
            result = evaluation.eval_correctness_test(PLAIN, PLAIN, test(None, 1e-9))
        self.assertIn("not judged by flashproof, but by allclose: dropout_p", result.error_msg)

    def test_what_is_raised_and_other_operators_are_as_before(self):
        def broken(*args, **kwargs):
            raise RuntimeError("no such luck")

        result = evaluation.eval_correctness_test(FLASH, broken, TESTS[0])
        self.assertFalse(result.is_correct)
        self.assertIn("no such luck", result.error_msg)
        two = SimpleNamespace(args=[torch.ones(3), torch.ones(3)], kwargs={})
        add = torch.ops.aten.add.Tensor
        self.assertTrue(evaluation.eval_correctness_test(add, add, two).is_correct)


if __name__ == "__main__":
    unittest.main()
