import {
  recurrentQuantities,
  type RecurrentQuantityName,
  type RecurrentShape,
} from '../../problem/index.js';
import { drawSome, drawsOf } from '../rows/index.js';
import type { Coordinates, GivenQuantity } from '../kernel-outputs.js';
import type { RecurrentRows } from './given-quantities.js';
import { headParts, type HeadPart } from './head-part.js';
import type { JudgedRecurrence } from './judge-recurrence.js';

/** Key heads of a problem that are judged, each with all of its tokens: a token's output needs all that come before it. */
export interface HeadSample {
  readonly seed: number;
  /** The judged parts, in the order of their heads, and the number of all. */
  readonly parts: readonly HeadPart[];
  readonly ofParts: number;
  /** Rows of the output, tokens of value heads, that are judged, and of all. */
  readonly rows: number;
  readonly of: number;
}

/**
 * The fewest key heads, at random, that have a number of rows of the output; null where these are all.
 * @param request the number of rows, 1 at least, and the seed of the draw
 */
export function sampleHeads(
  shape: RecurrentShape,
  request: { readonly rows: number; readonly seed: number },
): HeadSample | null {
  const all = headParts(shape);
  const ofPart = (shape.tokens * shape.valueHeads) / shape.keyHeads;
  const count = Math.ceil(request.rows / Math.max(1, ofPart));
  if (count >= all.length) return null;
  const drawn = drawSome([...all.keys()], count, drawsOf(request.seed, 0));
  return {
    seed: request.seed,
    parts: drawn.sort((a, b) => a - b).map((i) => all[i]),
    ofParts: all.length,
    rows: count * ofPart,
    of: all.length * ofPart,
  };
}

/** A judged quantity as it was given: of a sample, its judged heads alone, one after the other. */
export interface GivenResult {
  readonly name: RecurrentQuantityName;
  readonly rows: RecurrentRows;
  readonly given: GivenQuantity;
  /** Of a sample, the rows of all heads, and the heads that are judged, counted over batch and heads; null where all are. */
  readonly sampled: { readonly whole: RecurrentRows; readonly heads: readonly number[] } | null;
}

/** The heads of a quantity that belong to a part, counted over batch and heads, in their order. */
function headsOf(
  { entry, keyHead }: HeadPart,
  { name, quantity, shape }: RecurrentRows,
  whole: RecurrentShape,
): number[] {
  const { keyHeads, sequences, batch } = whole;
  const group = shape.heads / keyHeads;
  const isState = quantity.rowWord === 'row';
  const isOfHeads = recurrentQuantities[name].of === 'heads';
  const entries = isState && batch === 1 && !isOfHeads ? sequences.map((_, i) => i) : [entry];
  return entries.flatMap((one) =>
    Array.from({ length: group }, (_, i) => one * shape.heads + keyHead * group + i),
  );
}

/** Where the heads of a part stand among those of a given quantity. */
export function headsOfPart(
  part: HeadPart,
  { rows, sampled }: GivenResult,
  whole: RecurrentShape,
): number[] {
  if (sampled === null) return headsOf(part, rows, whole);
  return headsOf(part, sampled.whole, whole).map((head) => sampled.heads.indexOf(head));
}

/** A given quantity with the heads of a sample alone; all of it where there is none. */
export function sampledQuantity(
  one: Omit<GivenResult, 'sampled'>,
  sample: HeadSample | null,
  shape: RecurrentShape,
): GivenResult {
  if (sample === null) return { ...one, sampled: null };
  const { rows, given } = one;
  const heads = sample.parts.flatMap((part) => headsOf(part, rows, shape)).sort((a, b) => a - b);
  const size = rows.shape.queries * rows.shape.vDim;
  const values = new Float64Array(heads.length * size);
  heads.forEach((head, at) => {
    values.set(given.values.subarray(head * size, (head + 1) * size), at * size);
  });
  const { length } = heads;
  const kept = { ...rows.shape, batch: 1, heads: length, kvHeads: length };
  return {
    ...one,
    rows: { ...rows, shape: kept },
    given: { ...given, values },
    sampled: { whole: rows, heads },
  };
}

/** The judgement of a quantity with the numbers that its heads have among all. */
export function withOwnHeads(
  judged: JudgedRecurrence,
  { sampled }: Pick<GivenResult, 'sampled'>,
): JudgedRecurrence {
  if (sampled === null) return judged;
  const { heads: perEntry } = sampled.whole.shape;
  const headOf = (head: number) => sampled.heads[head];
  const own = (at: Coordinates): Coordinates => {
    const head = headOf(at.head);
    return { ...at, batch: Math.floor(head / perEntry), head: head % perEntry };
  };
  const { elements, spread, structure } = judged;
  const { worst, firstNonFinite } = elements;
  return {
    ...judged,
    heads: perEntry,
    elements: {
      ...elements,
      worst: worst && { ...worst, at: own(worst.at) },
      firstNonFinite: firstNonFinite && own(firstNonFinite),
    },
    spread: {
      ...spread,
      worst: spread.worst && { ...spread.worst, at: own(spread.worst.at) },
      results: spread.results.map((one) => ({ ...one, head: headOf(one.head) })),
    },
    structure: structure.map((one) => ({ ...one, head: headOf(one.head) })),
  };
}
