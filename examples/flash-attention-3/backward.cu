// One of FlashAttention-3's backward kernels with those before and behind it, and the host code that launches them: which ones the macros say. It reads
// Q, K, V, O, the LSE and dO from files, and writes dQ, dK and dV. Linked with the CUDA runtime it runs on a GPU; linked with launches.cpp it says what it
// would launch.
#include "flash_bwd_launch_template.h"
#include "folder.h"

int main(int count, char **words) {
  if (count < 2) return std::fprintf(stderr, "backward FOLDER name=value …\n"), 2;
  Folder const folder{words[1]};
  auto const given = numbers_of(count, words);
  auto whole = [&](char const *name) { return int64_t(given.at(name)); };
  int64_t const batch = whole("batch"), heads = whole("heads"), kv_heads = whole("kv_heads"), queries = whole("queries"), keys = whole("keys");
  int64_t const rows = batch * heads * queries, columns = batch * kv_heads * keys;
  int64_t const row_blocks = cute::ceil_div(queries, int64_t(BLOCK_M)), key_blocks = cute::ceil_div(keys, int64_t(BLOCK_N));
  int64_t const padded_queries = row_blocks * BLOCK_M, padded_keys = key_blocks * BLOCK_N, padded_rows = batch * heads * padded_queries;

  Flash_bwd_params parameters{};
  // [batch, heads, seqlen, dim], row by row
  parameters.q_ptr = folder.read<ELEMENT>("q", rows * DIM);
  parameters.k_ptr = folder.read<ELEMENT>("k", columns * DIM);
  parameters.v_ptr = folder.read<ELEMENT>("v", columns * DIM);
  parameters.o_ptr = folder.read<ELEMENT>("out", rows * DIM);
  parameters.softmax_lse_ptr = folder.read<float>("lse", rows);
  parameters.do_ptr = folder.read<ELEMENT>("dout", rows * DIM);
  auto *dq = folder.allocate<ELEMENT>("dq", rows * DIM, 0xFF);
  auto *dk = folder.allocate<ELEMENT>("dk", columns * DIM, 0xFF);
  auto *dv = folder.allocate<ELEMENT>("dv", columns * DIM, 0xFF);
  parameters.dq_ptr = dq, parameters.dk_ptr = dk, parameters.dv_ptr = dv;
  parameters.q_row_stride = parameters.k_row_stride = parameters.v_row_stride = parameters.o_row_stride = DIM;
  parameters.do_row_stride = parameters.dq_row_stride = parameters.dk_row_stride = parameters.dv_row_stride = DIM;
  parameters.q_head_stride = parameters.o_head_stride = parameters.do_head_stride = parameters.dq_head_stride = queries * DIM;
  parameters.k_head_stride = parameters.v_head_stride = parameters.dk_head_stride = parameters.dv_head_stride = keys * DIM;
  parameters.q_batch_stride = parameters.o_batch_stride = parameters.do_batch_stride = parameters.dq_batch_stride = heads * queries * DIM;
  parameters.k_batch_stride = parameters.v_batch_stride = parameters.dk_batch_stride = parameters.dv_batch_stride = kv_heads * keys * DIM;
  parameters.b = batch, parameters.h = heads, parameters.h_k = kv_heads;
  parameters.seqlen_q = queries, parameters.seqlen_k = keys;
  parameters.seqlen_q_rounded = padded_queries, parameters.seqlen_k_rounded = padded_keys;
  parameters.total_q = batch * queries, parameters.total_k = batch * keys;
  parameters.d = parameters.d_rounded = parameters.dv = parameters.dv_rounded = DIM;
  parameters.scale_softmax = given.at("scale");
  parameters.softcap = given.at("softcap");
  parameters.is_causal = CAUSAL, parameters.is_local = LOCAL;
  parameters.window_size_left = whole("left"), parameters.window_size_right = whole("right");
  parameters.is_bf16 = std::is_same_v<ELEMENT, cutlass::bfloat16_t>;
  parameters.deterministic = DETERMINISTIC;
  parameters.arch = 90, parameters.num_sm = whole("multiprocessors");
  parameters.dsoftmax_sum = folder.allocate<float>("row_sums", padded_rows, 0xFF);
  parameters.softmax_lse_log2_ptr = folder.allocate<float>("lse_base_2", padded_rows, 0xFF);
  parameters.dq_accum_ptr = folder.allocate<float>("dq_sums", padded_rows * DIM, 0xFF);
  parameters.dq_semaphore = folder.allocate<int>("dq_turns", row_blocks * batch * heads, 0xFF);
  if (GROUPED) {
    parameters.dk_accum_ptr = folder.allocate<float>("dk_sums", batch * kv_heads * padded_keys * DIM, 0);
    parameters.dv_accum_ptr = folder.allocate<float>("dv_sums", batch * kv_heads * padded_keys * DIM, 0);
    if (DETERMINISTIC) {
      parameters.dk_semaphore = folder.allocate<int>("dk_turns", key_blocks * batch * kv_heads, 0);
      parameters.dv_semaphore = folder.allocate<int>("dv_turns", key_blocks * batch * kv_heads, 0);
    }
  }
  run_flash_bwd<90, DIM, BLOCK_M, BLOCK_N, ELEMENT, CAUSAL, LOCAL, SOFTCAP, false, DETERMINISTIC, GROUPED, STAGES_DO, STAGES_DS, SWAP_SDP, SWAP_DKV, SWAP_DQ,
                WARPGROUPS, LAYOUT_SDP, LAYOUT_DKV, LAYOUT_DQ, V_IN_REGISTERS>(parameters, nullptr);
  CHECK_CUDA(cudaDeviceSynchronize());
  folder.write("dq", dq, rows * DIM);
  folder.write("dk", dk, columns * DIM);
  folder.write("dv", dv, columns * DIM);
}
