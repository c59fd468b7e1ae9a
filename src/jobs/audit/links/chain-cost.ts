import { attentionOracle, prologueValues, writtenValues } from '../../../../oracles/index.js';
import { multiplyAddsOf, type JudgedPart } from '../../../audit/index.js';
import { decodeTensor, type Tensor } from '../../../formats/index.js';
import type { ChainPart } from '../../../io/tensors/index.js';
import { problemShape, slotCount, type CacheWrite, type Problem } from '../../../problem/index.js';
import type { ChainCost, ChainFigure } from '../../../report/json/index.js';

/** Number of multiply-adds up to which the cost is computed: some minutes. */
const mostMultiplyAdds = 2 ** 35;

/** Exact keys and values, by the slot of the cache that a write put them in. */
export interface ExactSlots {
  readonly slots: number;
  /** [columns of all heads] by slot. */
  readonly k: ReadonlyMap<number, Float64Array>;
  readonly v: ReadonlyMap<number, Float64Array>;
}

/** What a tensor is behind its prologue, exact; undefined where the chain has no prologue of it. */
function exactPrologue(parts: readonly JudgedPart[], name: string): Float64Array | undefined {
  const part = parts.find((one) => one.name === name);
  if (part === undefined) return undefined;
  const { low, high } = prologueValues(part.input, part.prologue);
  return low.map((x, i) => (x + high[i]) / 2);
}

/** What a chain was given, exact. */
export interface ExactInputs {
  /** [tokens, heads, columns]; null without a prologue of q. */
  readonly q: Float64Array | null;
  /** Null without a write. */
  readonly slots: ExactSlots | null;
}

/** What a chain was given: what its prologue makes of its inputs, and what its write stores of them, before anything is rounded. */
export function exactInputs(
  prologue: readonly JudgedPart[],
  write: CacheWrite | null,
): ExactInputs {
  return {
    q: exactPrologue(prologue, 'q') ?? null,
    slots: write && exactSlots(write, prologue),
  };
}

/** New tokens by their slots: those of the prologue, else the middle of what a right kernel may have before it stores them. */
function exactSlots(write: CacheWrite, prologue: readonly JudgedPart[]): ExactSlots {
  const rows = (name: string) => {
    const part = write.parts.find((one) => one.name === name);
    const found = new Map<number, Float64Array>();
    if (part === undefined) return found;
    const spans = writtenValues(part);
    const before = part.prologue === null ? exactPrologue(prologue, name) : undefined;
    const { low, high } =
      before?.length === spans.low.length ? { low: before, high: before } : spans;
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
  return { slots: part?.numbers.sizes.slots ?? 0, k: rows('k'), v: rows('v') };
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
  const { keyLists, ...all } = problem;
  return keyLists === undefined ? null : all;
}

/** Q as the prologue makes it, before it is rounded; null where none is known. */
function exactQueries(problem: Problem, q: Float64Array | null): Tensor | null {
  if (q === null || q.length !== problem.q.data.length) return null;
  const { batch, heads, queries, qkDim } = problemShape(problem);
  const data = new Float64Array(q.length);
  for (let row = 0; row < batch * queries; row++)
    for (let head = 0; head < heads; head++) {
      const [entry, query] = [Math.floor(row / queries), row % queries];
      const at = (row * heads + head) * qkDim;
      const to = ((entry * heads + head) * queries + query) * qkDim;
      data.set(q.subarray(at, at + qkDim), to);
    }
  return { format: 'fp64', shape: problem.q.shape, data };
}

/** A problem whose K and V are what was written, before the cache's format, and its Q exact; null where nothing of it is known. */
function unrounded(problem: Problem, exact: ExactInputs) {
  const q = exactQueries(problem, exact.q);
  const known = exact.slots === null ? null : unquantised(problem, exact.slots);
  if (q === null && known === null) return null;
  const words = [...(known === null ? [] : [known.words]), ...(q === null ? [] : ['q unrounded'])];
  return { problem: { ...(known?.problem ?? problem), ...(q && { q }) }, words: words.join(', ') };
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
  { end, exact }: { readonly end: ChainPart; readonly exact: ExactInputs },
): ChainCost | string {
  if (multiplyAddsOf(problem, problemShape(problem)) > mostMultiplyAdds)
    return 'the problem is too large to be computed exactly for all keys';
  const values = decodeTensor(out);
  const all = unselected(problem);
  const known = unrounded(all ?? problem, exact);
  const figures = [
    figureOf(`on what ${end.name} read`, problem, values),
    ...(all === null ? [] : [figureOf('on every key of the cache', all, values)]),
    ...(known === null ? [] : [figureOf(`on every key, ${known.words}`, known.problem, values)]),
  ];
  return { end: end.dumped('out'), figures };
}
