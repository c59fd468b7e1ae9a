import { drawPlan, type Fixed } from '../audit/links/cache-write/drawn-plan.js';
import { randomValues } from '../../properties/problems/values.js';
import { dumpOf, numbers, whole, type RawTensor } from './cache-file.js';

/** Tensors of a chain by their names in the dump. */
export type Dump = Readonly<Record<string, RawTensor>>;

const [heads, dim, keys] = [4, 64, 3];

const write: Fixed = {
  tokens: 5,
  heads,
  columns: dim,
  blocks: 3,
  blockSize: 8,
  layouts: ['nhd', 'nhd'],
  slots: [8, 9, 10, 2, -1],
  code: 'bf16',
  scaling: null,
  rope: false,
  norm: false,
  spread: 1,
};

/** The numbers of a tensor in bf16. */
function decoded({ bytes }: RawTensor): Float64Array {
  const shorts = new Uint16Array(bytes.slice().buffer);
  const wide = new Float32Array(Uint32Array.from(shorts).map((x) => x << 16).buffer);
  return Float64Array.from(wide);
}

/** Attention of one sequence over listed keys of the second page, in fp64: O and LSE. */
function attend(q: Float64Array, k: Float64Array, v: Float64Array, listed: readonly number[]) {
  const out = new Float64Array(heads * dim);
  const lse = new Float64Array(heads);
  const row = (key: number, head: number) => ((8 + key) * heads + head) * dim;
  for (let head = 0; head < heads; head++) {
    const scores = listed.map((key) => {
      let sum = 0;
      for (let i = 0; i < dim; i++) sum += q[head * dim + i] * k[row(key, head) + i];
      return sum / Math.sqrt(dim);
    });
    const top = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - top));
    const total = weights.reduce((a, b) => a + b);
    lse[head] = top + Math.log(total);
    for (const [i, key] of listed.entries())
      for (let d = 0; d < dim; d++)
        out[head * dim + d] += (weights[i] / total) * v[row(key, head) + d];
  }
  return { out, lse };
}

/** What a right chain dumps: a write of five tokens, a selection of two of three keys, and attention over the cache. */
export function chainDump(seed: number): Dump {
  const written = dumpOf(drawPlan(seed, write));
  const random = randomValues(seed);
  const q = numbers('bf16', Array.from({ length: heads * dim }, random.normal), [1, heads, 1, dim]);
  const scores = Array.from({ length: keys }, random.normal);
  const listed = [...scores.keys()].sort((a, b) => scores[b] - scores[a]).slice(0, 2);
  const { key_cache: k, value_cache: v } = written;
  const { out, lse } = attend(decoded(q), decoded(k), decoded(v), listed);
  const prefixed = Object.entries(written).map(([name, x]) => [`cache_write.${name}`, x] as const);
  return {
    ...Object.fromEntries(prefixed),
    'selection.scores': numbers('fp32', scores, [1, 1, 1, keys]),
    'selection.indices': whole(listed, [1, 1, 1, 2]),
    'attention.q': q,
    'attention.k': k,
    'attention.v': v,
    'attention.block_table': whole([1], [1, 1]),
    'attention.seqused_k': whole([keys]),
    'attention.kv_index': whole([...listed].reverse(), [1, 1, 1, 2]),
    'attention.out': numbers('bf16', out, [1, heads, 1, dim]),
    'attention.lse': numbers('fp32', lse, [1, heads, 1]),
  };
}
