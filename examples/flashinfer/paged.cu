// BatchPrefillWithPagedKVCacheWrapper(backend="fa2"): a batch whose keys lie in pages, [pages, keys of a page, heads, dim].
#include "one-tile.h"
//
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>

#include "problem.h"

using namespace flashinfer;
using Params = BatchPrefillPagedParams<ELEMENT, ELEMENT, ELEMENT, int32_t>;

static void run(Problem& problem) {
  const uint32_t heads = problem.number("heads"), kv_heads = problem.number("kv_heads");
  const uint32_t batch = problem.number("batch"), rows = problem.number("rows"), page = problem.number("page");
  auto q_starts = problem.values<int32_t>("q_starts"), page_starts = problem.values<int32_t>("page_starts");
  auto *q = problem.given<ELEMENT>("q"), *k = problem.given<ELEMENT>("k"), *v = problem.given<ELEMENT>("v");
  paged_kv_t<ELEMENT, int32_t> cache(kv_heads, page, DIM, batch, QKVLayout::kNHD, k, v, problem.given<int32_t>("pages"),
                                     problem.given<int32_t>("page_starts"), problem.given<int32_t>("last_page_lengths"));
  auto* out = problem.result<ELEMENT>("out", size_t(rows) * heads * DIM);
  auto* lse = problem.result<float>("lse", size_t(rows) * heads);

  const size_t float_bytes = problem.number("float_bytes"), int_bytes = 1 << 14;
  auto* floats = problem.empty<char>("floats", float_bytes);
  auto* ints = problem.empty<char>("ints", int_bytes);
  std::vector<char> host(int_bytes);
  PrefillPlanInfo plan;
  CHECK((PrefillPlan<int32_t>(floats, float_bytes, ints, host.data(), int_bytes, plan, q_starts.data(), page_starts.data(), rows, batch, heads,
                              kv_heads, DIM, DIM, page, /*enable_cuda_graph=*/false, sizeof(ELEMENT), /*window_left=*/-1, /*fixed_split_size=*/-1,
                              /*disable_split_kv=*/false, /*num_colocated_ctas=*/0, /*uniform_q_len=*/0, nullptr)));
  Params params(q, cache, nullptr, problem.given<int32_t>("q_starts"), nullptr, nullptr, out, lse, nullptr, heads, heads * DIM, DIM,
                /*window_left=*/-1, /*logits_soft_cap=*/0, problem.number("scale"), /*rope_scale=*/1, /*rope_theta=*/1e4);
  params.request_indices = GetPtrFromBaseOffset<int32_t>(ints, plan.request_indices_offset);
  params.qo_tile_indices = GetPtrFromBaseOffset<int32_t>(ints, plan.qo_tile_indices_offset);
  params.kv_tile_indices = GetPtrFromBaseOffset<int32_t>(ints, plan.kv_tile_indices_offset);
  params.o_indptr = GetPtrFromBaseOffset<int32_t>(ints, plan.o_indptr_offset);
  params.kv_chunk_size_ptr = GetPtrFromBaseOffset<int32_t>(ints, plan.kv_chunk_size_ptr_offset);
  ELEMENT* parts = nullptr;
  float* part_lses = nullptr;
  if (plan.split_kv) {
    params.merge_indptr = GetPtrFromBaseOffset<int32_t>(ints, plan.merge_indptr_offset);
    parts = GetPtrFromBaseOffset<ELEMENT>(floats, plan.v_offset);
    part_lses = GetPtrFromBaseOffset<float>(floats, plan.s_offset);
  }
  params.padded_batch_size = plan.padded_batch_size;
  params.max_total_num_rows = plan.total_num_rows;
  expect("TILE_Q", plan.cta_tile_q, TILE_Q);
  CHECK((BatchPrefillWithPagedKVCacheDispatched<true, TILE_Q, DIM, DIM, PosEncodingMode::kNone, false, MaskMode::MASK,
                                                DefaultAttention<false, false, false, false>>(params, parts, part_lses, /*enable_pdl=*/false, nullptr)));
}

PROGRAM(run)
