"""Decode steps recorded as chains, and judged."""

import types

import numpy as np
import pytest

from flashproof import RequestError, assert_chain, audit_chain, record_chain, result
from flashproof.safetensors import read


def choose(scores, count):
    """The largest scores of each row."""
    return np.argsort(-scores, axis=-1, kind="stable")[..., :count].astype(np.int32)


def merge(out, lse):
    top = lse.max(axis=0)
    weights = np.exp(lse - top)
    total = weights.sum(axis=0)
    return (weights[..., None] * out).sum(axis=0) / total[..., None], top + np.log(total)


def parts():
    draw = np.random.default_rng(3)
    return (
        draw.standard_normal((2, 1, 2, 3, 8)).astype(np.float32),
        draw.standard_normal((2, 1, 2, 3)).astype(np.float32),
    )


SCORES = np.random.default_rng(1).standard_normal((2, 1, 1, 9)).astype(np.float32)


def record(path, chosen=choose):
    with record_chain(path) as chain:
        select = chain.link(
            "selection", chosen, reads={"scores": "scores"}, writes={"indices": result}
        )
        join = chain.link(
            "merge",
            merge,
            reads={"out_partial": "out", "lse_partial": "lse"},
            writes={"out": result[0], "lse": result[1]},
        )
        select(SCORES, 3)
        join(*parts())
    return path


def test_a_right_chain_passes(tmp_path):
    report = assert_chain(record(tmp_path / "step.safetensors"))
    assert report.passed and report.json["kind"] == "chain-audit"
    assert [one["status"] for one in report.json["links"]] == ["PASS", "PASS"]
    assert report.command is not None and "step.safetensors" in report.command


def test_a_wrong_link_is_named_and_the_others_pass(tmp_path):
    path = record(tmp_path / "step.safetensors", lambda scores, count: choose(-scores, count))
    report = audit_chain(path)
    assert report.sentence.startswith("FAIL: selection:")
    assert [one["status"] for one in report.json["links"]] == ["FAIL", "PASS"]
    with pytest.raises(AssertionError, match="FAIL: selection"):
        assert_chain(path)


def store(key, cache, slots):
    cache[slots] = key


def test_reads_are_copied_before_a_call_and_writes_behind_it(tmp_path):
    path = tmp_path / "write.safetensors"
    cache = np.zeros((4, 1, 2), np.float32)
    ops = types.SimpleNamespace(store=store)
    with record_chain(path) as chain:
        chain.watch(
            ops,
            "store",
            "cache-write",
            reads={"k": "key", "slot_mapping": "slots", "k_scale": 0.5},
            writes={"key_cache": "cache"},
            notes={"causal": True},
            call=1,
        )
        for slot in (0, 2, 3):
            ops.store(np.full((1, 1, 2), slot + 1.0, np.float32), cache, np.array([slot]))
    assert ops.store is store
    tensors, metadata = read(path)
    values = {name: np.frombuffer(one.data, np.float32) for name, one in tensors.items()}
    # The second call, and what the first left before it.
    assert values["cache-write.key_cache_before"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert values["cache-write.key_cache"].tolist() == [1, 1, 0, 0, 3, 3, 0, 0]
    assert '"k_scale": "0.5"' in metadata["links"] and '"causal": "true"' in metadata["links"]


def test_what_is_wrong_with_a_recording_is_said(tmp_path):
    with pytest.raises(ValueError, match="no link was recorded"), record_chain(tmp_path / "none"):
        pass
    chain = record_chain(tmp_path / "step.safetensors")
    with pytest.raises(ValueError, match="contract is 'atention'; give one of"):
        chain.dump("atention", {})  # type: ignore[arg-type]
    chain.dump("selection", {"scores": SCORES})
    with pytest.raises(ValueError, match="two links 'selection'"):
        chain.dump("selection", {"scores": SCORES})
    wrong = chain.link("merge", merge, reads={"out_partial": "outs"}, writes={})
    with pytest.raises(TypeError, match=r"merge.out_partial is the argument 'outs'.*has out, lse"):
        wrong(*parts())
    chain.save()
    with pytest.raises(RequestError):
        audit_chain(tmp_path / "missing.safetensors")
