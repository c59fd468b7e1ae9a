// One of FlashAttention-3's forward kernels, and the host code that launches it: which one the macros say. It reads Q, K and V from files, and writes O
// and the LSE. Linked with the CUDA runtime it runs on a GPU; linked with launches.cpp it says what it would launch.
#include "flash_fwd_launch_template.h"
#include "folder.h"
#if SPLIT
#include "flash_fwd_combine_launch_template.h"
#endif

using Output = std::conditional_t<sizeof(ELEMENT) == 1, cutlass::bfloat16_t, ELEMENT>;

#if SPLIT
// The combine kernel asks for the architecture, and would compile for each.
void combine(Flash_fwd_params &parameters) {
  constexpr int rows = DIM_V <= 64 ? 16 : 8, columns = DIM_V <= 64 ? 64 : 128;
  run_flash_fwd_combine<90, rows, columns, LOG_SPLITS, false, false, Output, float>(parameters, nullptr, false);
}
#endif

int main(int count, char **words) {
  if (count < 2) return std::fprintf(stderr, "forward FOLDER name=value …\n"), 2;
  Folder const folder{words[1]};
  auto const given = numbers_of(count, words);
  auto whole = [&](char const *name) { return int64_t(given.at(name)); };
  int64_t const batch = whole("batch"), heads = whole("heads"), kv_heads = whole("kv_heads"), queries = whole("queries"), keys = whole("keys");
  int64_t const splits = whole("splits"), outputs = batch * heads * queries * DIM_V, rows = batch * heads * queries;

  Flash_fwd_params parameters{};
  // [batch, heads, seqlen, dim], row by row
  parameters.q_ptr = folder.read<ELEMENT>("q", rows * DIM);
  parameters.k_ptr = folder.read<ELEMENT>("k", batch * kv_heads * keys * DIM);
  parameters.v_ptr = folder.read<ELEMENT>("v", batch * kv_heads * keys * DIM_V);
  auto *out = folder.allocate<Output>("out", outputs, 0xFF);
  auto *lse = folder.allocate<float>("lse", rows, 0xFF);
  parameters.o_ptr = out;
  parameters.softmax_lse_ptr = lse;
  parameters.q_row_stride = parameters.k_row_stride = DIM;
  parameters.v_row_stride = parameters.o_row_stride = DIM_V;
  parameters.v_dim_stride = 1;
  parameters.q_head_stride = queries * DIM, parameters.q_batch_stride = heads * queries * DIM;
  parameters.k_head_stride = keys * DIM, parameters.k_batch_stride = kv_heads * keys * DIM;
  parameters.v_head_stride = keys * DIM_V, parameters.v_batch_stride = kv_heads * keys * DIM_V;
  parameters.o_head_stride = queries * DIM_V, parameters.o_batch_stride = heads * queries * DIM_V;
  parameters.b = parameters.b_k = batch, parameters.h = heads, parameters.h_k = kv_heads;
  parameters.seqlen_q = queries, parameters.seqlen_k = keys;
  parameters.total_q = batch * queries, parameters.total_k = batch * keys;
  parameters.d = parameters.d_rounded = DIM, parameters.dv = parameters.dv_rounded = DIM_V;
  parameters.scale_softmax = given.at("scale");
  parameters.softcap = given.at("softcap");
  parameters.is_causal = CAUSAL, parameters.is_local = LOCAL;
  parameters.window_size_left = whole("left"), parameters.window_size_right = whole("right");
  parameters.is_bf16 = std::is_same_v<Output, cutlass::bfloat16_t>;
  parameters.num_splits = splits, parameters.pack_gqa = PACK;
  parameters.arch = 90, parameters.num_sm = whole("multiprocessors");
  parameters.page_size = 1;
  if ((CAUSAL || LOCAL) && !SPLIT) parameters.tile_count_semaphore = folder.allocate<int>("next_tile", 1, 0);
  if (SPLIT) {
    parameters.oaccum_ptr = folder.allocate<float>("out_partial", splits * outputs, 0xFF);
    parameters.softmax_lseaccum_ptr = folder.allocate<float>("lse_partial", splits * rows, 0xFF);
    parameters.oaccum_row_stride = DIM_V, parameters.oaccum_head_stride = queries * DIM_V;
    parameters.oaccum_batch_stride = heads * queries * DIM_V, parameters.oaccum_split_stride = outputs;
    parameters.lseaccum_head_stride = queries, parameters.lseaccum_batch_stride = heads * queries, parameters.lseaccum_split_stride = rows;
  }
  run_flash_fwd<90, DIM, DIM_V, CLUSTER, ELEMENT, Output, CAUSAL, LOCAL, SOFTCAP, false, false, false, false, PACK, SPLIT, false>(parameters, nullptr);
#if SPLIT
  combine(parameters);
#endif
  CHECK_CUDA(cudaDeviceSynchronize());
  folder.write("out", out, outputs);
  folder.write("lse", lse, rows);
}
