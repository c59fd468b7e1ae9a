"""FlashInfer-Bench with attention judged by flashproof: import this module where benchmarks are started.

Definitions of op types gqa_paged and gqa_ragged are judged by bounds that hold for any correct kernel, instead of atol and rtol.
"""

from types import SimpleNamespace

import torch
from flashinfer_bench.bench.evaluators import registry
from flashinfer_bench.bench.evaluators.default import DefaultEvaluator
from flashinfer_bench.bench.evaluators.utils import normalize_result
from flashinfer_bench.bench.utils import make_eval
from flashinfer_bench.data import Correctness, EvaluationStatus

import flashproof


class AttentionEvaluator(DefaultEvaluator):
    """Shapes, dtypes and what is raised are the default evaluator's; numbers are flashproof's."""

    @classmethod
    def can_evaluate(cls, definition):
        return definition.name.startswith(("gqa_paged", "gqa_ragged"))

    @classmethod
    def check_correctness(cls, definition, sol_runnable, inputs, ref_outputs, cfg, log_path, device):
        kept = []

        def run(*arguments):
            result = sol_runnable(*arguments)
            is_given = sol_runnable.metadata.destination_passing_style
            kept.append(arguments[len(definition.inputs) :] if is_given else result)
            return result

        watched, errors, sentences = Watched(run, sol_runnable.metadata), [], []
        for given, due in zip(inputs, ref_outputs):
            found, failure = super().check_correctness(definition, watched, [given], [due], cfg, log_path, device)
            if failure is not None and failure.status != EvaluationStatus.INCORRECT_NUMERICAL:
                return found, failure
            errors.append((found.max_relative_error, found.max_absolute_error))
            outputs = dict(zip(definition.outputs, normalize_result(definition, kept.pop(), device)))
            try:
                report = judge(definition, dict(zip(definition.inputs, given)), outputs)
                is_right, sentence, text = report.passed, report.sentence, report.text
            except (ValueError, TypeError) as error:
                is_right, sentence = failure is None, f"not judged by flashproof, but by tolerances: {error}"
                text = sentence
            sentences.append(sentence)
            if not is_right:
                break
        relative, absolute = torch.tensor(errors).amax(0).tolist()
        said = Correctness(
            max_relative_error=relative, max_absolute_error=absolute, extra={"flashproof": sentences}
        )
        if is_right:
            return said, None
        status = EvaluationStatus.INCORRECT_NUMERICAL
        return said, make_eval(status, device, log_path, correctness=said, extra_msg=text)


class Watched(SimpleNamespace):
    """A solution whose outputs are kept."""

    def __init__(self, run, metadata):
        super().__init__(run=run, metadata=metadata)

    def __call__(self, *arguments):
        return self.run(*arguments)


def judge(definition, given, outputs):
    """The report of one trial. LSEs of FlashInfer are in base 2, [rows, heads]."""
    q = given["q"]
    queries = given.get("qo_indptr")
    if queries is None:  # one query of each sequence
        queries = torch.arange(q.shape[0] + 1, dtype=torch.int32)
    features = {"cu_seqlens_q": queries}
    if "kv_indices" in given:
        k, v = given["k_cache"], given["v_cache"]
        last = given.get("kv_last_page_len")
        if last is None:  # pages are full
            last = torch.full((len(given["kv_indptr"]) - 1,), k.shape[1], dtype=torch.int32)
        pages = {"indptr": given["kv_indptr"], "indices": given["kv_indices"], "last_page_len": last}
        features.update({f"paged_kv_{name}": one for name, one in pages.items()})
    else:
        k, v = given["k"], given["v"]
        features["cu_seqlens_k"] = given["kv_indptr"]
    return flashproof.audit(
        q, k, v, outputs["output"], outputs.get("lse"), scale=float(given["sm_scale"]), causal="causal" in definition.name,
        features=features, options=["--lse-base", "2"],
    )  # fmt: skip


# Benchmarks run in processes that import the program's main module again: there it is registered too.
if AttentionEvaluator not in registry._EVALUATORS:
    registry._EVALUATORS.append(AttentionEvaluator)
