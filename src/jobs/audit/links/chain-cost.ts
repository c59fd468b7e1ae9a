import { attentionOracle, writtenValues } from '../../../../oracles/index.js';
import { multiplyAddsOf } from '../../../audit/index.js';
import { decodeTensor, type Tensor } from '../../../formats/index.js';
import type { ChainPart } from '../../../io/tensors/index.js';
import { problemShape, slotCount, type CacheWrite, type Problem } from '../../../problem/index.js';
import type { ChainCost, ChainFigure } from '../../../report/json/index.js';

/** Number of multiply-adds up to which the cost is computed: some minutes. */
const mostMultiplyAdds = 2 ** 35;

/** Exact keys and values, by the slot of the cache that a write put them in. */
export interface ExactSlots {
  /** The names of the links that made the cache. */
  readonly writer: string;
  readonly slots: number;
  /** [columns of all heads] by slot. */
  readonly k: ReadonlyMap<number, Float64Array>;
  readonly v: ReadonlyMap<number, Float64Array>;
}

/** What a write was given, exact: the middle of what a right kernel may have before it stores it. */
export function exactSlots(writer: string, write: CacheWrite): ExactSlots {
  const rows = (name: string) => {
    const part = write.parts.find((one) => one.name === name);
    const found = new Map<number, Float64Array>();
    if (part === undefined) return found;
    const { low, high } = writtenValues(part);
    const width = low.length / Math.max(1, write.tokens);
    for (const [token, slot] of write.slots.entries())
      if (slot >= 0)
        found.set(
          slot,
          Float64Array.from({ length: width }, (_, i) => {
            const at = token * width + i;
            return (low[at] + high[at]) / 2;
          }),
        );
    return found;
  };
  const [part] = write.parts;
  return { writer, slots: part?.numbers.sizes.slots ?? 0, k: rows('k'), v: rows('v') };
}

/** K or V with the exact numbers in the slots of a write, in fp64; `rows` are how many it replaced. */
function replaced(
  problem: Problem,
  tensor: Tensor,
  slots: number,
  exact: ReadonlyMap<number, Float64Array>,
): { readonly tensor: Tensor; readonly rows: number } | null {
  const { batch, kvHeads, keys } = problemShape(problem);
  const stored = problem.stored?.keys;
  const slotOf = (row: number) => stored?.slots[row] ?? row;
  if ((stored === undefined ? batch * keys : slotCount(stored)) !== slots) return null;
  const data = decodeTensor(tensor);
  const dim = data.length / Math.max(1, batch * kvHeads * keys);
  let rows = 0;
  for (let row = 0; row < batch * keys; row++) {
    const own = exact.get(slotOf(row));
    if (own?.length !== kvHeads * dim) continue;
    rows++;
    const [entry, key] = [Math.floor(row / keys), row % keys];
    for (let head = 0; head < kvHeads; head++)
      data.set(
        own.subarray(head * dim, (head + 1) * dim),
        ((entry * kvHeads + head) * keys + key) * dim,
      );
  }
  return { tensor: { format: 'fp64', shape: tensor.shape, data }, rows };
}

function figureOf(what: string, problem: Problem, out: Float64Array): ChainFigure {
  const exact = attentionOracle(problem).quantities.out.values;
  let [error, size, largest] = [0, 0, 0];
  for (const [i, value] of exact.entries()) {
    const apart = Math.abs(out[i] - value);
    error += apart * apart;
    size += value * value;
    // Also where it is NaN.
    if (!(apart <= largest)) largest = apart;
  }
  return { what, relative: Math.sqrt(error / size), largest };
}

/** A problem whose queries see all keys that no mask but a selection hides; null where it has no selection. */
function unselected(problem: Problem): Problem | null {
  if (problem.keyLists === undefined) return null;
  const { keyLists: _, ...all } = problem;
  return all;
}

/** A problem whose K and V are what was written, before the cache's format; null where no slot of it is known. */
function unquantised(problem: Problem, { slots, k, v }: ExactSlots) {
  const [keys, values] = [
    replaced(problem, problem.k, slots, k),
    replaced(problem, problem.v, slots, v),
  ];
  if (keys === null || values === null || keys.rows + values.rows === 0) return null;
  const { batch, keys: length } = problemShape(problem);
  return {
    problem: { ...problem, k: keys.tensor, v: values.tensor },
    words: `${keys.rows} of ${batch * length} as before the cache`,
  };
}

/**
 * The distance of a chain's output from exact attention: on what attention read; with all keys, where a selection left some out; and with
 * K and V as they were before the write. No verdict: declared approximations may cost what they cost.
 * @param out O in canonical order
 */
export function chainCost(
  problem: Problem,
  out: Tensor,
  { end, exact }: { readonly end: ChainPart; readonly exact: ExactSlots | null },
): ChainCost | string {
  if (multiplyAddsOf(problem, problemShape(problem)) > mostMultiplyAdds)
    return 'the problem is too large to be computed exactly for all keys';
  const values = decodeTensor(out);
  const all = unselected(problem);
  const known = exact === null ? null : unquantised(all ?? problem, exact);
  const figures = [
    figureOf(`on what ${end.name} read`, problem, values),
    ...(all === null ? [] : [figureOf('on every key of the cache', all, values)]),
    ...(known === null ? [] : [figureOf(`on every key, ${known.words}`, known.problem, values)]),
  ];
  return { end: end.dumped('out'), figures };
}
