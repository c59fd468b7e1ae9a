// BatchDecodeWithPagedKVCacheWrapper: one query of each sequence, whose keys lie in pages, [pages, keys of a page, heads, dim].
#include "one-tile.h"
//
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

#include "problem.h"

using namespace flashinfer;
using Params = BatchDecodeParams<ELEMENT, ELEMENT, ELEMENT, int32_t>;
using Variant = DefaultAttention<false, false, false, false>;

static void run(Problem& problem) {
  const uint32_t heads = problem.number("heads"), kv_heads = problem.number("kv_heads");
  const uint32_t batch = problem.number("batch"), page = problem.number("page");
  auto page_starts = problem.values<int32_t>("page_starts");
  auto *q = problem.given<ELEMENT>("q"), *k = problem.given<ELEMENT>("k"), *v = problem.given<ELEMENT>("v");
  paged_kv_t<ELEMENT, int32_t> cache(kv_heads, page, DIM, batch, QKVLayout::kNHD, k, v, problem.given<int32_t>("pages"),
                                     problem.given<int32_t>("page_starts"), problem.given<int32_t>("last_page_lengths"));
  auto* out = problem.result<ELEMENT>("out", size_t(batch) * heads * DIM);
  auto* lse = problem.result<float>("lse", size_t(batch) * heads);

  const size_t float_bytes = problem.number("float_bytes"), int_bytes = 1 << 14;
  auto* floats = problem.empty<char>("floats", float_bytes);
  auto* ints = problem.empty<char>("ints", int_bytes);
  std::vector<char> host(int_bytes);
  DecodePlanInfo plan;
  CHECK((DecodePlan<DIM, PosEncodingMode::kNone, Variant, Params>(
      floats, float_bytes, ints, host.data(), int_bytes, plan, page_starts.data(), batch, heads, page, /*enable_cuda_graph=*/false, nullptr,
      BatchDecodeWithPagedKVCacheWorkEstimationDispatched<GROUP, DIM, PosEncodingMode::kNone, Variant, Params>)));
  Params params(q, nullptr, cache, out, lse, nullptr, heads, heads * DIM, DIM, /*window_left=*/-1, /*logits_soft_cap=*/0,
                problem.number("scale"), /*rope_scale=*/1, /*rope_theta=*/1e4);
  params.padded_batch_size = plan.padded_batch_size;
  params.request_indices = GetPtrFromBaseOffset<int32_t>(ints, plan.request_indices_offset);
  params.kv_tile_indices = GetPtrFromBaseOffset<int32_t>(ints, plan.kv_tile_indices_offset);
  params.o_indptr = GetPtrFromBaseOffset<int32_t>(ints, plan.o_indptr_offset);
  params.kv_chunk_size_ptr = GetPtrFromBaseOffset<int32_t>(ints, plan.kv_chunk_size_ptr_offset);
  ELEMENT* parts = nullptr;
  float* part_lses = nullptr;
  if (plan.split_kv) {
    parts = GetPtrFromBaseOffset<ELEMENT>(floats, plan.v_offset);
    part_lses = GetPtrFromBaseOffset<float>(floats, plan.s_offset);
  }
  CHECK((BatchDecodeWithPagedKVCacheDispatched<DIM, PosEncodingMode::kNone, Variant>(params, parts, part_lses, /*enable_pdl=*/false, nullptr)));
}

PROGRAM(run)
