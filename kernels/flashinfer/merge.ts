import {
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
  addFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import { conversions } from '../../src/hardware/index.js';
import type { SplitLaw } from '../online-softmax/split-tile.js';
import {
  exp2Hardware,
  log2Hardware,
  naturalLogOf2,
  reciprocals,
  roundingConversions,
  type InputFormat,
} from '../online-softmax/units.js';

const { fp32 } = formats;
const { max } = Math;

/**
 * The merge of parts of `partKeys` keys: their outputs rounded to the inputs' format, one after the other, each with the weight 2^(LSE − m),
 * where LSEs are in base 2. Source: MergeStatesKernel of include/flashinfer/attention/cascade.cuh and state_t of state.cuh; the contractions
 * are those of nvcc 13.0. When there are at least as many parts as queries, FlashInfer has another kernel.
 */
export function flashInferMerge(splits: number, partKeys: number, format: InputFormat): SplitLaw {
  const round = conversions[roundingConversions[format]];
  const stored = (x: number): number => decode(formats[format], round.evaluate(encode(fp32, x)));
  const weightOf = (m: number, now: number): number => {
    const below = subtractFloat32(m, now);
    return exp2Hardware(Number.isNaN(below) ? -Infinity : below);
  };
  return {
    cut: (blocks) =>
      Array.from({ length: splits }, (_, part) =>
        blocks.filter(({ block }) => Math.floor(block.first / partKeys) === part),
      ),
    combine: (parts, vDim) => {
      let [m, d] = [-Infinity, 1];
      const sums = new Float32Array(vDim);
      for (const { out, lse } of parts) {
        const now = max(m, lse);
        const [old, added] = [weightOf(m, now), weightOf(lse, now)];
        d = fusedMultiplyAddFloat32(d, old, added);
        for (let c = 0; c < vDim; c++) {
          const own = multiplyFloat32(added, out === null ? 0 : stored(out[c]));
          sums[c] = fusedMultiplyAddFloat32(old, sums[c], own);
        }
        m = now;
      }
      const factor = d > 0 ? reciprocals['rcp.approx.ftz.f32'](d) : 0;
      const out = sums.map((sum) => multiplyFloat32(sum, factor));
      return { out, lse: multiplyFloat32(addFloat32(m, log2Hardware(d)), naturalLogOf2) };
    },
  };
}
