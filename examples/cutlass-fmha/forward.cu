// CUTLASS's FMHA for Blackwell (examples/77_blackwell_fmha), forward, one configuration: heads first in memory.
#include "collective/fmha_fusion.hpp"
#include "collective/sm100_fmha_fwd_epilogue_tma_warpspecialized.hpp"
#include "collective/sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp"
#include "device/fmha.hpp"
#include "kernel/fmha_options.hpp"
#include "kernel/fmha_tile_scheduler.hpp"
#include "kernel/sm100_fmha_fwd_kernel_tma_warpspecialized.hpp"
#include "problem.h"

using namespace cute;
using namespace cutlass::fmha;

using Element = ELEMENT;
using Shapes = cute::tuple<int, int, int, cute::tuple<cute::tuple<int, int>, int>>;  // queries, keys, dim, ((heads of a group, groups), batch)
using StrideQ = cute::tuple<int, _1, cute::tuple<cute::tuple<int, int>, int>>;
using StrideK = cute::tuple<int, _1, cute::tuple<cute::tuple<_0, int>, int>>;
using StrideLSE = cute::tuple<_1, cute::tuple<cute::tuple<int, int>, int>>;
using Mainloop = collective::Sm100FmhaFwdMainloopTmaWarpspecialized<Element, float, float, Shape<_256, _128, Int<DIM>>, StrideQ, StrideK, StrideK,
                                                                    collective::MASK>;
using Epilogue = collective::Sm100FmhaFwdEpilogueTmaWarpspecialized<Element, float, Mainloop::TileShapePV, StrideQ, StrideLSE>;
using Operation = device::FMHA<kernel::Sm100FmhaFwdKernelTmaWarpspecialized<Shapes, Mainloop, Epilogue, kernel::IndividualTileScheduler>>;

static void run(Problem& problem) {
  const int heads = problem.number("heads"), kv_heads = problem.number("kv_heads"), batch = problem.number("batch");
  const int queries = problem.number("queries"), keys = problem.number("keys"), group = heads / kv_heads;
  auto *q = problem.given<Element>("q"), *k = problem.given<Element>("k"), *v = problem.given<Element>("v");
  auto* out = problem.result<Element>("out", size_t(batch) * heads * queries * DIM);
  auto* lse = problem.result<float>("lse", size_t(batch) * heads * queries);
  const auto stride_q = make_stride(DIM, _1{}, make_stride(make_stride(queries * DIM, group * queries * DIM), heads * queries * DIM));
  const auto stride_k = make_stride(DIM, _1{}, make_stride(make_stride(_0{}, keys * DIM), kv_heads * keys * DIM));
  const auto stride_lse = make_stride(_1{}, make_stride(make_stride(queries, group * queries), heads * queries));
  cutlass::KernelHardwareInfo gpu;
  gpu.device_id = 0;
  gpu.sm_count = 148;
  const Shapes shapes = make_tuple(queries, keys, int(DIM), make_tuple(make_tuple(group, kv_heads), batch));
  Operation::Arguments arguments{
      shapes, {q, stride_q, k, stride_k, v, stride_k, float(problem.number("scale"))}, {out, stride_q, lse, stride_lse}, gpu};
  Operation operation;
  if (Operation::get_workspace_size(arguments) != 0) throw std::runtime_error("a workspace is not given");
  for (auto status : {Operation::can_implement(arguments), operation.initialize(arguments), operation.run()})
    if (status != cutlass::Status::kSuccess) throw std::runtime_error(cutlassGetStatusString(status));
}

PROGRAM(run)
