"""BackendBench with attention judged by flashproof: python judged_attention.py --suite torchbench --backend directory

Takes the arguments of BackendBench. Of operators of scaled_dot_product_attention, correctness is the verdict of an audit instead of allclose.
"""

import logging
from types import SimpleNamespace

import BackendBench.eval as evaluation

from flashproof.torch import audit_call

ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
usual = evaluation.eval_correctness_test


def eval_correctness_test(op, impl, test):
    """In the place of BackendBench's own, which still says how large the errors are and what is raised."""
    if "scaled_dot_product" not in str(op) or "backward" in str(op):
        return usual(op, impl, test)
    kept = []

    def run(*args, **kwargs):
        kept.append(impl(*args, **kwargs))
        return kept[-1]

    args, kwargs = test.args, test.kwargs  # some suites draw them anew whenever they are asked for
    result = usual(op, run, SimpleNamespace(args=args, kwargs=kwargs))
    if result.error_type:
        return result
    out, *others = kept[0] if isinstance(kept[0], (tuple, list)) else kept
    names = [one.name for one in op._schema.arguments]
    given = {**dict(zip(names, args)), **kwargs}
    given["attn_mask"] = given.get("attn_mask", given.get("attn_bias"))
    lse = others[0] if others and others[0] is not None and others[0].numel() > 0 else None
    try:
        report = audit_call(out, lse=lse, **{name: given[name] for name in ARGUMENTS if name in given})
    except (ValueError, TypeError) as error:
        result.error_msg = f"not judged by flashproof, but by allclose: {error}"
        logging.getLogger(__name__).warning("%s: %s", op, result.error_msg)
        return result
    result.is_correct = report.passed
    result.error_msg = "" if report.passed else report.text
    return result


# BackendBench's workers import the program's main module again: there it is replaced too.
evaluation.eval_correctness_test = eval_correctness_test

if __name__ == "__main__":
    from BackendBench.scripts.main import cli

    cli()
