import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import type { KernelOutputs } from '../../../src/audit/index.js';

/** A row of the textbook's attention over a list. */
export interface ListPlace {
  readonly batch: number;
  readonly head: number;
  readonly kvHead: number;
  readonly query: number;
}

/** A key by its number among all of its batch, its score where it is not q·k, and its value where it is another's. */
export interface ListedKey {
  readonly key: number;
  readonly score?: number;
  readonly value?: (v: Float64Array) => Float64Array;
}

/** O in bf16 and the LSE in fp32 of attention over the keys that a function gives for each row, as often as it gives them. */
export function attendListed(
  problem: Problem,
  keysOf: (place: ListPlace) => readonly ListedKey[],
): KernelOutputs {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
  const out = new Float64Array(batch * heads * queries * vDim);
  const lse = new Float64Array(batch * heads * queries);
  for (let row = 0; row < lse.length; row++) {
    const query = row % queries;
    const head = Math.floor(row / queries) % heads;
    const b = Math.floor(row / queries / heads);
    const kvHead = Math.floor(head / groupSize);
    const first = (b * kvHeads + kvHead) * keys;
    const listed = keysOf({ batch: b, head, kvHead, query });
    const scores = listed.map(({ key, score }) => {
      if (score !== undefined) return score;
      let dot = 0;
      for (let t = 0; t < qkDim; t++) dot += q[row * qkDim + t] * k[(first + key) * qkDim + t];
      return problem.scale * dot;
    });
    const most = Math.max(...scores);
    const sum = scores.reduce((total, s) => total + Math.exp(s - most), 0);
    lse[row] = listed.length === 0 ? -Infinity : most + Math.log(sum);
    listed.forEach(({ key, value }, i) => {
      const own = v.subarray((first + key) * vDim, (first + key + 1) * vDim);
      const taken = value?.(own) ?? own;
      for (let c = 0; c < vDim; c++)
        out[row * vDim + c] += (Math.exp(scores[i] - most) / sum) * taken[c];
    });
  }
  const tensor = (format: 'bf16' | 'fp32', sizes: number[], values: Float64Array): Tensor => ({
    format,
    shape: sizes,
    data: encodeFromFloat64(formats[format], values),
  });
  return {
    out: tensor('bf16', [batch, heads, queries, vDim], out),
    lse: tensor('fp32', [batch, heads, queries], lse),
  };
}
