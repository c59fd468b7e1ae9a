import type { AttentionKernel, AttentionOutputs } from '../../../properties/index.js';
import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type FormatName,
} from '../../../src/formats/index.js';
import {
  clipRanges,
  keptWeights,
  problemMask,
  problemShape,
  rowPlaces,
  scoreLaw,
  spanOf,
  type KeptWeights,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
  type RowPlace,
  type ScoreAddend,
} from '../../../src/problem/index.js';
import { mergedParts, storedPart, type RowPart } from './merge-parts.js';
import { storedKeys, type KeySource } from './stored-keys.js';

const { fround } = Math;

/** How a row is computed; a fault replaces some of it. */
export interface FeatureSteps {
  /** Natural units. */
  readonly scale: number;
  readonly ranges: Mask['ranges'];
  readonly addend: ScoreAddend | null;
  readonly kept: KeptWeights | null;
  readonly source: KeySource;
  /** The kv head, counted over [batch, kv heads], of a head counted over [batch, heads]. */
  readonly kvHead: (head: number) => number;
  /** The sink's logit; −∞ for none. */
  readonly sink: (head: number) => number;
  /** How many parts the keys of a row are split into. */
  readonly parts: (place: RowPlace) => number;
  /** Parts as the merge reads them; those without keys have a sum of 0. */
  readonly stored: (parts: readonly RowPart[], place: RowPlace) => readonly RowPart[];
  /** Makes a row of its parts, in fp32. */
  readonly merge: (parts: readonly RowPart[]) => RowPart;
  /** Whether O = Σ p·v takes every slot of a block that is there, hidden ones with p = 0. */
  readonly readsHidden: boolean;
  /** The LSE from its natural logarithm. */
  readonly lse: (natural: number) => number;
}

/** Which correct kernel it is. */
export interface FeatureKernelOptions {
  /** Keys of a block; default 64. */
  readonly blockKeys?: number;
  /** Default `first-last`. */
  readonly order?: 'first-last' | 'last-first';
  /** What weights are rounded to before their product with V; default the format of V. */
  readonly weights?: FormatName;
  /** Parts that the keys of each row are split into, and whose results are merged; default 1. */
  readonly splits?: number;
  /** Changes steps of the kernel on a problem; default none. */
  readonly change?: (
    steps: FeatureSteps,
    problem: Problem,
    shape: ProblemShape,
  ) => Partial<FeatureSteps>;
}

/** The steps of a correct kernel. */
function correctSteps(problem: Problem, shape: ProblemShape, splits: number): FeatureSteps {
  const { heads, kvHeads, groupSize } = shape;
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  return {
    scale: problem.scale,
    ranges: problemMask(problem, shape).ranges,
    addend: scoreLaw(problem, shape).addend,
    kept: keptWeights(problem, shape),
    source: storedKeys(problem),
    kvHead: (head) => Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
    sink: (head) => (sinks === null ? -Infinity : sinks[head % heads]),
    parts: () => splits,
    stored: (parts) => (parts.length === 1 ? parts : parts.map(storedPart)),
    merge: mergedParts,
    readsHidden: false,
    lse: (natural) => natural,
  };
}

/** log2 of the factor of weights in formats of 8 bits, whose smallest numbers are large. */
const offsets: Partial<Record<FormatName, number>> = { e4m3: 8, e5m2: 8 };

/** A row on its way through its blocks. */
interface KernelRow {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly query: number;
  readonly place: RowPlace;
  readonly ranges: readonly KeyRange[];
}

/** The rows of the kernel, made ready for a problem. */
interface RowKernel {
  readonly shape: ProblemShape;
  readonly row: (
    head: number,
    query: number,
  ) => { readonly out: Float64Array; readonly lse: number };
}

function rowKernel(problem: Problem, options: FeatureKernelOptions): RowKernel {
  const { blockKeys = 64, order = 'first-last', splits = 1, change } = options;
  const shape = problemShape(problem);
  const correct = correctSteps(problem, shape, splits);
  const steps: FeatureSteps = { ...correct, ...change?.(correct, problem, shape) };
  const { source, kvHead, kept, addend, readsHidden } = steps;
  const { queries, qkDim, vDim } = shape;
  const weightFormat = options.weights ?? (problem.v.format === 'fp64' ? 'fp32' : problem.v.format);
  const lift = 2 ** (offsets[weightFormat] ?? 0);
  const q = decodeTensor(problem.q);
  const placeOf = rowPlaces(problem, shape);
  const scale = fround(steps.scale);
  const cap = problem.softcap === null ? null : fround(problem.softcap);
  const rounded = (weights: Float64Array): Float64Array => {
    const format = formats[weightFormat];
    return decodeToFloat64(
      encodeFromFloat64(format, weights, { overflow: 'saturate' }),
      format,
      weights,
    );
  };

  function scoreOf(head: number, query: number, at: number): number {
    let sum = 0;
    const row = (head * queries + query) * qkDim;
    for (let t = 0; t < qkDim; t++) sum += q[row + t] * source.k[at + t];
    const scaled = fround(fround(sum) * scale);
    return cap === null ? scaled : fround(cap * fround(Math.tanh(fround(scaled / cap))));
  }

  /** One block of keys first ≤ j < first + blockKeys of a row, counted over all keys. */
  function addBlock(part: RowPart, { head, query, place, ranges }: KernelRow, first: number) {
    const kv = kvHead(head);
    const visible = clipRanges(ranges, first, first + blockKeys);
    const rowOf = (key: number): number => source.rowOf(place, key - place.firstKey);
    const scores = new Float64Array(blockKeys).fill(-Infinity);
    for (const { begin, end } of visible) {
      const added = new Float64Array(end - begin);
      addend?.(head, query, begin, added);
      for (let key = begin; key < end; key++) {
        const score = scoreOf(head, query, source.kAt(kv, rowOf(key)));
        scores[key - first] = addend === null ? score : fround(score + fround(added[key - begin]));
      }
    }
    const max = scores.reduce((a, b) => (b > a || Number.isNaN(b) ? b : a), part.max);
    if (max === -Infinity && !readsHidden) return;
    const base = max === -Infinity ? 0 : max;
    const alpha = fround(Math.exp(fround(part.max - base)));
    const weights = scores.map((s) => fround(Math.exp(fround(s - base))));
    part.sum = fround(fround(part.sum * alpha) + fround(weights.reduce((a, b) => a + b, 0)));
    part.max = max;
    if (kept !== null) {
      const isKept = new Uint8Array(blockKeys);
      kept.fill(head, query, first, isKept);
      isKept.forEach((one, j) => (weights[j] *= one));
    }
    const ps = rounded(weights.map((p) => p * lift));
    const sums = new Float64Array(vDim);
    const add = (key: number): void => {
      const at = rowOf(key);
      if (at < 0) return;
      const [p, from] = [ps[key - first], source.vAt(kv, at)];
      for (let c = 0; c < vDim; c++) sums[c] += p * source.v[from + c];
    };
    const taken = readsHidden ? [{ begin: first, end: first + blockKeys }] : visible;
    for (const { begin, end } of taken) for (let key = begin; key < end; key++) add(key);
    for (let c = 0; c < vDim; c++)
      part.out[c] = fround(fround(part.out[c] * alpha) + fround(sums[c] / lift));
  }

  /** The keys of a row in parts of whole blocks. */
  function partsOf(row: KernelRow): RowPart[] {
    const { place, ranges } = row;
    const parts = Math.max(1, steps.parts(place));
    const blocks = Math.ceil(place.keys / blockKeys);
    const ofPart = Math.ceil(blocks / parts);
    const span = spanOf(ranges);
    return Array.from({ length: parts }, (_, index) => {
      const part: RowPart = { max: -Infinity, sum: 0, out: new Float64Array(vDim) };
      const own = Array.from(
        { length: Math.max(0, Math.min(ofPart, blocks - index * ofPart)) },
        (_, i) => place.firstKey + (index * ofPart + i) * blockKeys,
      ).filter((first) => first < span.end && first + blockKeys > span.begin);
      for (const first of order === 'first-last' ? own : own.reverse()) addBlock(part, row, first);
      return part;
    });
  }

  return {
    shape,
    row: (head, query) => {
      const place = placeOf(head, query);
      const ofKeys = steps.merge(
        steps.stored(partsOf({ head, query, place, ranges: steps.ranges(head, query) }), place),
      );
      const sink = steps.sink(head);
      const logit: RowPart = {
        max: fround(sink),
        sum: sink === -Infinity ? 0 : 1,
        out: new Float64Array(vDim),
      };
      const { sum, max, out } = mergedParts([ofKeys, logit]);
      const ofLse = problem.sink?.inLse === false ? ofKeys : { sum, max };
      const factor = kept === null ? 1 : fround(1 / kept.share);
      return {
        out: out.map((x) => (sum === 0 ? 0 : fround(fround(x / sum) * factor))),
        lse: steps.lse(
          ofLse.sum === 0 ? -Infinity : fround(ofLse.max + fround(Math.log(ofLse.sum))),
        ),
      };
    },
  };
}

/**
 * An online softmax in plain fp32 that takes every feature of a problem, block by block of each row's sequence: a
 * correct kernel of no particular make, for laws, and with steps changed the faulty ones of faulty-kernels.ts. Keys
 * and values of problems that were posed in memory are read there, by the problem's own tables. Products of a block are
 * summed in fp64 and rounded once; exp, tanh and log are rounded from fp64. Weights are summed before they are rounded.
 * The output has the format of Q, bf16 for 8 bits.
 */
export function featureKernel(options: FeatureKernelOptions = {}): AttentionKernel {
  return (problem): AttentionOutputs => {
    const { shape, row } = rowKernel(problem, options);
    const { batch, heads, queries, vDim } = shape;
    const out = new Float64Array(batch * heads * queries * vDim);
    const lse = new Float32Array(batch * heads * queries);
    for (let head = 0; head < batch * heads; head++)
      for (let query = 0; query < queries; query++) {
        const at = head * queries + query;
        const { out: ofRow, lse: logarithm } = row(head, query);
        out.set(ofRow, at * vDim);
        lse[at] = logarithm;
      }
    const { shape: qShape, format } = problem.q;
    const outFormat = format === 'e4m3' || format === 'e5m2' ? 'bf16' : format;
    return {
      out: {
        format: outFormat,
        shape: [...qShape.slice(0, -1), vDim],
        data: encodeFromFloat64(formats[outFormat], out),
      },
      lse: { format: 'fp32', shape: qShape.slice(0, -1), data: lse },
    };
  };
}
