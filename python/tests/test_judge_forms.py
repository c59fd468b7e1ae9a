"""The judge on candidates as benchmarks have them, with NumPy in the place of PyTorch; on recurrences; on gradients."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import flashproof

CORRECT = (Path(__file__).with_name("candidates") / "correct.py").read_text()
# Whatever else runs on the machine.
BUDGET = flashproof.Budget(problems=1, seconds=1200, call_seconds=60, load_seconds=300)
MORE = replace(BUDGET, problems=2)
SMALL = {
    "framework": "numpy",
    "formats": ["fp32"],
    "properties": ["within-bound"],
    "largest": {"queries": 20, "keys": 20, "dim": 8},
}


def written(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{CORRECT}\n\n{text}")
    return path


KERNELBENCH = """
class ModelNew:
    def __init__(self, factor):
        self.factor = np.float32(factor)

    def __call__(self, Q, K, V):
        return self.factor * naive(Q, K, V, scale=Q.shape[-1] ** -0.5, causal=False, window=None, softcap=None)
"""


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_kernelbench(factor, tmp_path):
    path = written(tmp_path, "model_new.py", KERNELBENCH)
    made = flashproof.forms.kernelbench(path, init_inputs=[factor])
    found = flashproof.judge(made, SMALL, budget=BUDGET, seed=1)
    assert found.verdict == ("pass" if factor == 1 else "fail"), str(found)
    # Queries are as many as keys, and there is no mask.
    assert {one.problem.split(",")[0] for one in found.profile} <= {
        f"on {size} queries × {size} keys" for size in range(100)
    }


GPU_MODE = """
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    q, k, v = data
    return naive(q, k, v, scale=q.shape[-1] ** -0.5, causal={causal}, window=None, softcap=None)
"""


@pytest.mark.parametrize("causal", [True, False])
def test_gpu_mode(causal, tmp_path):
    path = written(tmp_path, "submission.py", GPU_MODE.format(causal=causal))
    largest = {"queries": 20, "keys": 20, "dim": 8, "heads": 2, "kv_heads": 1}
    contract = {**SMALL, "causal": "only", "groupSizes": [2], "largest": largest}
    found = flashproof.judge(flashproof.forms.gpu_mode(path), contract, budget=BUDGET, seed=1)
    assert found.verdict == ("pass" if causal else "fail"), str(found)


KDA = """
def custom_kernel(data):
    q, k, v, g, beta = (x.astype(np.float64) for x in data)
    group = v.shape[2] // q.shape[2]
    q, k = np.repeat(q, group, 2), np.repeat(k, group, 2)
    state, out = np.zeros((*v.shape[:1], *v.shape[2:3], k.shape[-1], v.shape[-1])), np.zeros_like(v)
    for t in range(q.shape[1]):
        state = state * np.exp(g[:, t])[..., None]
        read = np.einsum("bhk,bhkv->bhv", k[:, t], state)
        state = state + np.einsum("bhk,bhv->bhkv", k[:, t], {beta} * (v[:, t] - read))
        out[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], state) * q.shape[-1] ** -0.5
    return out.astype(data[2].dtype)
"""


@pytest.mark.parametrize("beta", ["beta[:, t, :, None]", "1"])
def test_a_recurrence_of_gpu_mode(beta, tmp_path):
    path = written(tmp_path, "submission.py", KDA.format(beta=beta))
    made = flashproof.forms.gpu_mode(path, data=("q", "k", "v", "g", "beta"))
    contract = {
        "contract": "recurrent",
        "framework": "numpy",
        "families": ["kda"],
        "formats": ["fp32"],
        "dims": [4],
        "properties": ["within-bound"],
    }
    found = flashproof.judge(made, contract, budget=BUDGET, seed=1)
    assert found.verdict == ("pass" if "beta" in beta else "fail"), str(found)


SDPA = """
def scaled_dot_product_attention_kernel_impl(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    s, v = scores_and_values(query, key, value, scale, False, None)
    if is_causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    if attn_mask is not None and {masked}:
        s = np.where(attn_mask, s, -np.inf)
    p = weights(s, s.max(-1, keepdims=True))
    return normalised(p.sum(-1, keepdims=True), np.einsum("bhqk,bhkd->bhqd", p, v)).astype(query.dtype)
"""


@pytest.mark.parametrize("masked", [True, False])
def test_backendbench(masked, tmp_path):
    folder = "scaled_dot_product_attention"
    path = written(tmp_path / folder, f"{folder}_implementation_v1.py", SDPA.format(masked=masked))
    made = flashproof.forms.backendbench(path.parent)
    contract = {**SMALL, "causal": "only"}
    found = flashproof.judge(made, contract, budget=MORE, seed=1)
    assert found.verdict == ("pass" if masked else "fail"), str(found)


RUN = """
def run(q, {k}, {v}, {ends}, sm_scale{results}):
    k, v = ({k}[kv_indices][:, 0], {v}[kv_indices][:, 0]) if {paged} else ({k}, {v})
    rows = np.diff({queries}).tolist()
    found, base2 = np.empty((len(q), q.shape[1], v.shape[-1]), q.dtype), np.empty(q.shape[:2], np.float32)
    for one, (first, count) in enumerate(zip(np.cumsum([0, *rows]), rows)):
        last, a, b = first + count, *kv_indptr[one : one + 2]
        heads = (x.swapaxes(0, 1)[None] for x in (q[first:last], k[a:b], v[a:b]))
        s, values = scores_and_values(*heads, sm_scale, {causal}, None)
        largest = s.max(-1, keepdims=True)
        p = weights(s, largest)
        total = p.sum(-1, keepdims=True)
        found[first:last] = normalised(total, np.einsum("bhqk,bhkd->bhqd", p, values))[0].swapaxes(0, 1)
        base2[first:last] = (np.log(total) + largest)[0, ..., 0].T * np.float32({unit})
    {end}
"""

AXES = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "page_size": 1}


def flashinfer(paged, styled, unit="1.4426950408889634"):
    ends = ("kv_indptr", "kv_indices") if paged else ("qo_indptr", "kv_indptr")
    text = RUN.format(
        k="k_cache" if paged else "k",
        v="v_cache" if paged else "v",
        ends=", ".join(ends),
        paged=paged,
        queries="np.arange(len(q) + 1)" if paged else "qo_indptr",
        causal=not paged,
        results=", output, lse" if styled else "",
        unit=unit,
        end="output[...], lse[...] = found, base2"
        if styled
        else "return {'lse': base2, 'output': found}",
    )
    names = ("q", "k_cache", "v_cache") if paged else ("q", "k", "v")
    definition = {
        "name": "gqa_paged_decode_h4" if paged else "gqa_ragged_prefill_causal_h4",
        "axes": {name: {"type": "const", "value": size} for name, size in AXES.items()},
        "inputs": {name: {"shape": [], "dtype": "float32"} for name in (*names, *ends, "sm_scale")},
        "outputs": {"output": {}, "lse": {}},
    }
    solution = {
        "name": "mine",
        "spec": {"entry_point": "main.py::run", "destination_passing_style": styled},
        "sources": [{"path": "main.py", "content": f"{CORRECT}\n\n{text}"}],
    }
    return solution, definition


@pytest.mark.parametrize(("paged", "styled"), [(False, True), (True, False)])
def test_flashinfer_bench(paged, styled, tmp_path):
    solution, definition = flashinfer(paged, styled)
    (tmp_path / "solution.json").write_text(json.dumps(solution))
    made = flashproof.forms.flashinfer_bench(tmp_path / "solution.json", definition)
    contract = {name: value for name, value in SMALL.items() if name != "largest"}
    contract["largest"] = {
        "queries": 1 if paged else 9,
        "keys": 70,
        "dim": 8,
        "heads": 4,
        "kv_heads": 2,
    }
    found = flashproof.judge(made, contract, budget=BUDGET, seed=1)
    assert found.verdict == "pass", str(found)


def test_an_lse_of_another_base_is_refused():
    made = flashproof.forms.flashinfer_bench(*flashinfer(False, True, unit="1"))
    contract = {**SMALL, "largest": {"queries": 9, "keys": 9, "dim": 8, "heads": 4, "kv_heads": 2}}
    found = flashproof.judge(made, contract, budget=BUDGET, seed=1)
    assert found.verdict == "fail" and "LSE" in found.reason, str(found)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda folder: flashproof.forms.kernelbench(folder / "no.py"), "no.py: No such file"),
        (lambda folder: flashproof.forms.backendbench(folder), "no .*_implementation"),
        (lambda folder: flashproof.forms.flashinfer_bench({}, {}), "no solution and definition"),
        (
            lambda folder: flashproof.forms.flashinfer_bench(
                *(lambda s, d: (s, {**d, "inputs": {**d["inputs"], "ckv_cache": {}}}))(
                    *flashinfer(True, True)
                )
            ),
            "the inputs ckv_cache are not called here",
        ),
    ],
)
def test_what_is_no_such_candidate_is_told_in_one_line(make, error, tmp_path):
    with pytest.raises(ValueError, match=error):
        make(tmp_path)


@pytest.mark.parametrize("factor", [1, 1.01])
def test_gradients_are_judged(factor):
    text = f"""{CORRECT}

def backward(q, k, v, dout, *, scale, causal, window, softcap):
    group = q.shape[1] // k.shape[1]
    s, values = scores_and_values(q, k, v, scale, causal, window, np.float64)
    keys = np.repeat(k.astype(np.float64), group, 1)
    p = weights(s, s.max(-1, keepdims=True))
    p = normalised(p.sum(-1, keepdims=True), p)
    dp = dout.astype(np.float64) @ values.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    dq, dk, dv = ds @ keys, ds.swapaxes(-1, -2) @ q.astype(np.float64), p.swapaxes(-1, -2) @ dout.astype(np.float64)
    shared = (x.reshape(k.shape[0], k.shape[1], group, *x.shape[2:]).sum(2) for x in (dk * {factor}, dv))
    return tuple(x.astype(np.float32) for x in (dq, *shared))
"""
    contract = {
        **SMALL,
        "gradients": True,
        "emptyRows": False,
        "backward": "candidate.py::backward",
    }
    contract["properties"] = ["gradients-within-bound"]
    made = flashproof.Candidate.from_source(text, "naive")
    found = flashproof.judge(made, contract, budget=BUDGET, seed=1)
    assert found.verdict == ("pass" if factor == 1 else "fail"), str(found)
