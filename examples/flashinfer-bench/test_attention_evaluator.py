"""The evaluator on the CPU, with FlashInfer-Bench's own definitions, runnables and registry. What waits for a GPU is left out."""

import unittest
from unittest import mock

import torch

try:
    from flashinfer_bench.bench.config import BenchmarkConfig
    from flashinfer_bench.bench.evaluators import DefaultEvaluator, resolve_evaluator
    from flashinfer_bench.compile.runnable import Runnable, RunnableMetadata
    from flashinfer_bench.data import AxisConst, AxisVar, Definition, TensorSpec

    from attention_evaluator import AttentionEvaluator
except ImportError as error:
    raise unittest.SkipTest(f"{error}: pip install flashinfer-bench") from error

HEADS, KV_HEADS, DIM = 4, 2, 64
CONSTANTS = {"num_qo_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim": DIM}


def definition(name, inputs, page_size=None):
    """A definition of FlashInfer's trace, whose reference nobody runs here."""
    axes = {axis: AxisConst(value=size) for axis, size in CONSTANTS.items()}
    if page_size is not None:
        axes["page_size"] = AxisConst(value=page_size)
    specs = {}
    for one, (dtype, *shape) in inputs.items():
        axes.update({axis: AxisVar() for axis in shape if axis not in axes})
        specs[one] = TensorSpec(shape=shape or None, dtype=dtype)
    rows = specs["q"].shape[0]
    outputs = {
        "output": TensorSpec(shape=[rows, "num_qo_heads", "head_dim"], dtype="bfloat16"),
        "lse": TensorSpec(shape=[rows, "num_qo_heads"], dtype="float32"),
    }
    reference = f"def run({', '.join(specs)}):\n    raise NotImplementedError\n"
    return Definition(name=name, op_type=name[:9], axes=axes, inputs=specs, outputs=outputs, reference=reference)


CACHE = ("bfloat16", "num_pages", "page_size", "num_kv_heads", "head_dim")
PAGES = {"kv_indptr": ("int32", "len_indptr"), "kv_indices": ("int32", "num_kv_indices")}
QUERIES = ("bfloat16", "total_q", "num_qo_heads", "head_dim")
KEYS = ("bfloat16", "total_kv", "num_kv_heads", "head_dim")
SCALE = {"sm_scale": ("float32",)}
DECODE = {"q": QUERIES, "k_cache": CACHE, "v_cache": CACHE, **PAGES}
OFFSETS = {"qo_indptr": ("int32", "len_indptr"), "kv_indptr": ("int32", "len_indptr")}
DEFINITIONS = {
    "decode, pages of 1": definition("gqa_paged_decode_ps1", {**DECODE, **SCALE}, 1),
    "decode, pages of 4": definition(
        "gqa_paged_decode_ps4", {**DECODE, "kv_last_page_len": ("int32", "batch_size"), **SCALE}, 4
    ),
    "prefill, paged": definition("gqa_paged_prefill_causal_ps1", {**DECODE, **OFFSETS, **SCALE}, 1),
    "prefill, ragged": definition("gqa_ragged_prefill_causal", {"q": QUERIES, "k": KEYS, "v": KEYS, **OFFSETS, **SCALE}),
}
LENGTHS = [37, 5, 90]


def problem(chosen):
    """Inputs of a trial, in the definition's order, and the keys and values of each sequence."""
    draw = torch.Generator().manual_seed(1)
    normal = lambda *shape: torch.randn(shape, generator=draw).bfloat16()
    names, is_prefill = chosen.inputs, "qo_indptr" in chosen.inputs
    rows = [min(9, length) for length in LENGTHS] if is_prefill else [1] * len(LENGTHS)
    size = chosen.axes["page_size"].value if "page_size" in chosen.axes else 1
    pages = [-(-length // size) for length in LENGTHS]
    order = torch.randperm(sum(pages) + 3, generator=draw)[: sum(pages)].int()
    offsets = lambda counts: torch.tensor([0, *counts]).cumsum(0).int()
    given = {"q": normal(sum(rows), HEADS, DIM), "qo_indptr": offsets(rows), "sm_scale": 0.125}
    if "k_cache" in names:
        cache = (sum(pages) + 3, size, KV_HEADS, DIM)
        given.update(k_cache=normal(*cache), v_cache=normal(*cache), kv_indices=order, kv_indptr=offsets(pages))
        given["kv_last_page_len"] = torch.tensor([n - (p - 1) * size for n, p in zip(LENGTHS, pages)]).int()
        flat = [given[name][order.long()].reshape(-1, KV_HEADS, DIM) for name in ("k_cache", "v_cache")]
        starts = (offsets(pages) * size).tolist()
    else:
        flat = [normal(sum(LENGTHS), KV_HEADS, DIM) for _ in range(2)]
        given.update(k=flat[0], v=flat[1], kv_indptr=offsets(LENGTHS))
        starts = offsets(LENGTHS).tolist()
    sequences = [[x[first : first + n] for x in flat] for first, n in zip(starts, LENGTHS)]
    return [given[name] for name in names], rows, sequences


def attention(chosen, q, rows, sequences, fault=None):
    """What a kernel gives: bf16 outputs, and LSEs in base 2."""
    outs, lses = [], []
    for mine, (k, v) in zip(q.split(rows), sequences):
        k, v = (x.float().repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", mine.float(), k) * 0.125
        if "causal" in chosen.name:
            seen = torch.ones(scores.shape[1:]).tril(len(k) - len(mine) + (fault == "mask"))
            scores = scores.masked_fill(seen == 0, -torch.inf)
        lses.append(scores.logsumexp(-1).T / (1 if fault == "base" else torch.tensor(2.0).log()))
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v) * (1.004 if fault == "scale" else 1))
    return torch.cat(outs).bfloat16(), torch.cat(lses)


class Evaluator(unittest.TestCase):
    def verdict(self, name, fault, is_given=False, evaluator=None):
        chosen = DEFINITIONS[name]
        given, rows, sequences = problem(chosen)

        def kernel(*arguments):
            made = attention(chosen, arguments[0], rows, sequences, fault)
            if not is_given:
                return made
            for place, one in zip(arguments[len(given) :], made):
                place.copy_(one)

        about = RunnableMetadata(
            build_type="python", definition_name=chosen.name, solution_name="s", destination_passing_style=is_given, definition=chosen
        )
        due = list(attention(chosen, given[0], rows, sequences))
        with mock.patch("torch.cuda.synchronize"):
            return (evaluator or resolve_evaluator(chosen)).check_correctness(
                chosen, Runnable(kernel, about), [given] * 2, [due] * 2, BenchmarkConfig(), "", "cpu"
            )

    def test_is_chosen_for_attention_alone(self):
        for chosen in DEFINITIONS.values():
            self.assertIs(resolve_evaluator(chosen), AttentionEvaluator)
        other = DEFINITIONS["prefill, ragged"].model_copy(update={"name": "gemm_n128"})
        self.assertIsNot(resolve_evaluator(other), AttentionEvaluator)

    def test_what_is_right_passes(self):
        for name in DEFINITIONS:
            for is_given in (False, True):
                with self.subTest(name, is_given=is_given):
                    correctness, failure = self.verdict(name, None, is_given)
                    self.assertIsNone(failure)
                    self.assertTrue(all(one.startswith("PASS") for one in correctness.extra["flashproof"]))

    def test_what_is_wrong_fails(self):
        for name in DEFINITIONS:
            for fault in ("base", *(["mask"] if "prefill" in name else [])):
                with self.subTest(name, fault=fault):
                    _, failure = self.verdict(name, fault)
                    self.assertEqual(failure.status.value, "INCORRECT_NUMERICAL")
                    self.assertIn("FAIL", failure.log)

    def test_an_output_that_is_too_large_by_less_than_the_tolerance_is_found(self):
        for name in ("prefill, paged", "prefill, ragged"):
            with self.subTest(name):
                self.assertIsNone(self.verdict(name, "scale", evaluator=DefaultEvaluator)[1])
                self.assertIsNotNone(self.verdict(name, "scale")[1])


if __name__ == "__main__":
    unittest.main()
