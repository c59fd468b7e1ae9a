import { backwardOf, findKernelModel, runKernelModel } from '../../kernels/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { problemShape, type Tensor } from '../problem/index.js';
import { type Benchmark, rateOf } from './benchmark.js';
import { normalProblem, normalValues } from './normal-problem.js';

const size = { heads: 1, seqlen: 1024, dim: 128 };
const quickSize = { heads: 1, seqlen: 128, dim: 64 };
/** Number of products: S, dP, dV, dK and dQ. */
const products = 5;

/** FlashAttention-4's backward of a whole problem on one thread, after the forward. */
export const backwardBenchmark: Benchmark = {
  quantities: [
    {
      name: `fa4 backward, [1, ${size.seqlen}, ${size.dim}] bf16, one thread`,
      unit: 'multiply-adds/s',
      better: 'higher',
      target: 5e8,
    },
  ],
  prepare: (quick) => {
    const { heads, seqlen, dim } = quick ? quickSize : size;
    const problem = normalProblem('bf16', { heads, seqlen, dim });
    const { batch, queries, vDim } = problemShape(problem);
    const dout: Tensor = {
      format: 'bf16',
      shape: [batch, heads, queries, vDim],
      data: encodeFromFloat64(formats.bf16, normalValues(heads * queries * vDim, 4)),
    };
    const model = findKernelModel('fa4');
    const { out, lse } = runKernelModel(model, problem);
    const { pieces, run } = backwardOf(model).prepare(
      problem,
      { dout, forward: { out, lse } },
      new Map(),
    );
    return rateOf(products * heads * seqlen * seqlen * dim, () => {
      for (let piece = 0; piece < pieces; piece++) run(piece);
    });
  },
};
