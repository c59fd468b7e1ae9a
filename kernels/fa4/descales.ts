import type { ScaleFactors, Tensor } from '../../src/formats/index.js';
import { scaledTensors, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { Descale } from './configuration.js';

/** The factor of one (batch, kv head). @throws RequestError for factors that the kernel has no path for */
function factorOf(name: string, factors: ScaleFactors, kv: number, shape: ProblemShape): number {
  const [batches, heads, rows, columns] = [1, ...factors.shape].slice(-4);
  const isByHead = factors.name === 'descale' && rows === 1 && columns === 1;
  if (!isByHead || heads > shape.kvHeads)
    throw new RequestError(
      `${name}_${factors.name} differs within a head of K and V; the fa4 model takes a factor of each, as FlashAttention-4 does`,
    );
  const [batch, head] = [Math.floor(kv / shape.kvHeads), kv % shape.kvHeads];
  return factors.values[(batches === 1 ? 0 : batch) * heads + (heads === 1 ? 0 : head)];
}

/**
 * The descales of each (batch, kv head) of a problem; null where it has none. Source: `_load_effective_descales` in
 * flash_attn/cute/flash_fwd_sm100.py of Dao-AILab/flash-attention, which reads all three by batch and kv head.
 * @throws RequestError for factors by block
 */
export function problemDescales(problem: Problem, shape: ProblemShape): Descale[] | null {
  if (scaledTensors.every((name) => problem[name].scales === undefined)) return null;
  const all = (name: 'q' | 'k' | 'v', kv: number) => {
    const factors = problem[name].scales?.factors ?? [];
    if (factors.length > 1)
      throw new RequestError(
        `${name} has ${factors.map((one) => `${name}_${one.name}`).join(' and ')}; the fa4 model takes ${name}_descale alone`,
      );
    return factors.length === 0 ? 1 : factorOf(name, factors[0], kv, shape);
  };
  return Array.from({ length: shape.batch * shape.kvHeads }, (_, kv) => ({
    q: all('q', kv),
    k: all('k', kv),
    v: all('v', kv),
  }));
}

/** The problem with its inputs as they are stored. */
export function withoutScales(problem: Problem): Problem {
  const stored = ({ format, shape, data }: Tensor): Tensor => ({ format, shape, data });
  return { ...problem, q: stored(problem.q), k: stored(problem.k), v: stored(problem.v) };
}
