// single_prefill_with_kv_cache(backend="fa2"): one sequence, heads first in memory.
#include "one-tile.h"
//
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>

#include "problem.h"

using namespace flashinfer;

static void run(Problem& problem) {
  const uint32_t heads = problem.number("heads"), kv_heads = problem.number("kv_heads");
  const uint32_t queries = problem.number("queries"), keys = problem.number("keys");
  auto *q = problem.given<ELEMENT>("q"), *k = problem.given<ELEMENT>("k"), *v = problem.given<ELEMENT>("v");
  auto* out = problem.result<ELEMENT>("out", size_t(queries) * heads * DIM);
  auto* lse = problem.result<float>("lse", size_t(queries) * heads);
  // Keys are split into parts of 256 at least, each with its outputs and, in fp32, its LSEs.
  auto* parts = problem.empty<ELEMENT>("parts", size_t((keys + 255) / 256) * queries * heads * (DIM + 2));
  SinglePrefillParams<ELEMENT, ELEMENT, ELEMENT> params(
      q, k, v, nullptr, out, lse, nullptr, heads, kv_heads, queries, keys, DIM, queries * DIM, DIM, keys * DIM, DIM,
      /*window_left=*/-1, /*logits_soft_cap=*/0, problem.number("scale"), /*rope_scale=*/1, /*rope_theta=*/1e4);
  CHECK((SinglePrefillWithKVCacheDispatched<DIM, DIM, PosEncodingMode::kNone, false, MaskMode::MASK,
                                            DefaultAttention<false, false, false, false>>(params, parts, nullptr)));
}

PROGRAM(run)
