// single_prefill_with_kv_cache(backend="fa3"), for Hopper: one sequence, K and V heads first in memory.
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

#include "problem.h"

using namespace flashinfer;

static void run(Problem& problem) {
  const int heads = problem.number("heads"), kv_heads = problem.number("kv_heads");
  const int queries = problem.number("queries"), keys = problem.number("keys");
  SinglePrefillParams<ELEMENT, ELEMENT, ELEMENT> params{};
  params.q_ptr = problem.given<ELEMENT>("q");
  params.k_ptr = problem.given<ELEMENT>("k");
  params.v_ptr = problem.given<ELEMENT>("v");
  params.o_ptr = problem.result<ELEMENT>("out", size_t(queries) * heads * DIM);
  params.lse_ptr = problem.result<float>("lse", size_t(queries) * heads);
  params.additional_params.sm_scale = problem.number("scale");
  params.q_stride_n = params.k_stride_n = params.v_stride_n = params.o_stride_h = DIM;
  params.o_stride_n = heads * DIM;
  params.q_stride_h = queries * DIM;
  params.k_stride_h = params.v_stride_h = keys * DIM;
  params.qo_len = queries;
  params.kv_len = keys;
  params.num_qo_heads = heads;
  params.num_kv_heads = kv_heads;
  params.group_size = heads / kv_heads;
  params.window_left = -1;
  params.causal = MaskMode::MASK == MaskMode::kCausal;
  CHECK((SinglePrefillWithKVCacheDispatched<DIM, DIM, MaskMode::MASK, /*LEFT_SLIDING_WINDOW=*/false, StandardAttention>(params, nullptr)));
}

PROGRAM(run)
