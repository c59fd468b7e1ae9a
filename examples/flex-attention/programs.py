"""The programs that PyTorch's compiler writes for flex_attention and its gradient, as text."""

from types import SimpleNamespace


def modifications(metadata, queries, keys):
    """What a problem does to scores, and which pairs it keeps (None for all), as flex_attention takes them: softcap, causal, window, prefix."""
    import torch

    softcap = float(metadata["softcap"]) if "softcap" in metadata else None
    left, right = map(int, metadata.get("window", "-1,-1").split(","))
    prefix = int(metadata.get("prefix", 0))
    causal = metadata.get("causal") == "true"
    shift = keys - queries

    def score(score, b, h, query, key):
        return score if softcap is None else softcap * torch.tanh(score / softcap)

    def causal_mask(b, h, query, key):
        kept = query + shift >= key
        return kept | (key < prefix) if prefix > 0 else kept

    def window_mask(b, h, query, key):
        kept = query + shift - key <= left
        return kept & (key - query - shift <= right) if right >= 0 else kept

    return score, causal_mask if causal else window_mask if left >= 0 else None


def forward(shapes, dtype, scale, metadata):
    """The program of out and LSE, and the tensors that it takes behind q, k and v: the block mask."""
    from torch._higher_order_ops.flex_attention import flex_attention

    def trace(problem, fake):
        inputs = [fake(shape, dtype) for shape in shapes]

        def attend(q, k, v, *blocks):
            return flex_attention(q, k, v, problem.score, problem.whole(blocks), scale, problem.options(q, k, v), (), ())[:2]

        return attend, inputs

    return _program(shapes, metadata, trace)


def backward(shapes, dtype, scale, metadata):
    """The program of dq, dk and dv, and the tensors that it takes behind q, k, v, out, LSE (of base 2) and dout: the block mask."""
    import torch
    from torch._higher_order_ops.flex_attention import create_fw_bw_graph, flex_attention_backward

    def trace(problem, fake):
        out = (*shapes[0][:3], shapes[2][3])
        inputs = [*(fake(shape, dtype) for shape in shapes), fake(out, dtype), fake(out[:3], torch.float32), fake(out, dtype)]
        number = lambda **options: inputs[0].new_zeros((), **options)
        examples = (number(requires_grad=True), *(number(dtype=torch.int) for _ in range(4)))
        graphs = create_fw_bw_graph(problem.score, examples, ())

        def differentiate(q, k, v, out, lse, dout, *blocks):
            # Nothing asks for the LSE's own gradient.
            given = (q, k, v, out, lse, dout, None, *graphs)
            return flex_attention_backward(*given, problem.whole(blocks), scale, problem.options(q, k, v), (), ())[:3]

        return differentiate, inputs

    return _program(shapes, metadata, trace)


def _program(shapes, metadata, trace):
    """Traces with fake tensors, lowers as torch.compile does it, and gives the text."""
    import torch
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention.flex_attention import _apply_kernel_options, _create_empty_block_mask, create_block_mask

    queries, keys = shapes[0][2], shapes[1][2]
    score, mask = modifications(metadata, queries, keys)
    if mask is None:
        block_mask = _create_empty_block_mask(torch.empty(shapes[0]), torch.empty(shapes[1]))
    else:
        block_mask = create_block_mask(mask, None, None, queries, keys, device="cpu")
    members = block_mask.as_tuple()
    blocks = [one for one in members if isinstance(one, torch.Tensor)]

    def whole(tensors):
        left = iter(tensors)
        return tuple(next(left) if isinstance(one, torch.Tensor) else one for one in members)

    problem = SimpleNamespace(score=score, whole=whole, options=lambda q, k, v: _apply_kernel_options(q, k, v, True, None))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        fake = lambda shape, dtype: torch.empty(shape, dtype=dtype, device="cuda")
        function, tensors = trace(problem, fake)
        inputs = [*tensors, *(fake(one.shape, one.dtype) for one in blocks)]
        graph = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="real")(*inputs)
        lowering = GraphLowering(graph, example_inputs=inputs)
        with V.set_graph_handler(lowering), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowering.run(*inputs)
            program = lowering.codegen()[0]
    return getattr(program, "value", program), blocks
