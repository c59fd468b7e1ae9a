import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  scalesOfRows,
  type FormatName,
  type TensorScales,
} from '../../src/formats/index.js';
import {
  problemFeatures,
  problemShape,
  storeProblem,
  type Problem,
  type ProblemFeatures,
  type StoredForm,
  type Tensor,
  type Window,
} from '../../src/problem/index.js';
import { arrangeFeatures } from './features/arrange-features.js';
import { sizeNames, type SizeName, type Sizes } from './sizes.js';

/** The tensors of a problem. */
export const tensorNames = ['q', 'k', 'v'] as const;
export type TensorName = (typeof tensorNames)[number];

/** A problem with its tensors decoded to fp64, row-major of rank 4: easy to take apart. */
export interface PlainProblem {
  readonly sizes: Sizes;
  readonly formats: Readonly<Record<TensorName, FormatName>>;
  readonly values: Readonly<Record<TensorName, Float64Array>>;
  readonly scale: number;
  readonly causal: boolean;
  readonly window: Window | null;
  readonly softcap: number | null;
  /** Its other features, in the form that a problem has them; none if left out. */
  readonly features?: ProblemFeatures | undefined;
  /** The form in which packed sequences are posed; one behind the other if left out. */
  readonly form?: StoredForm | undefined;
  /** The gradient of its output, where it has one: [batch, query heads, queries, vDim], row-major. */
  readonly dout?: { readonly format: FormatName; readonly values: Float64Array } | undefined;
  /** Factors of each tensor's elements, not included in `values`; none if left out. */
  readonly factors?: Readonly<Partial<Record<TensorName, TensorScales>>> | undefined;
}

/** The four dimensions of each tensor. */
export function tensorShape(name: TensorName, sizes: Sizes): readonly number[] {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = sizes;
  return {
    q: [batch, kvHeads * groupSize, queries, qkDim],
    k: [batch, kvHeads, keys, qkDim],
    v: [batch, kvHeads, keys, vDim],
  }[name];
}

/** The four dimensions of the output and of its gradient. */
export function outputShape({
  batch,
  kvHeads,
  groupSize,
  queries,
  vDim,
}: Sizes): readonly number[] {
  return [batch, kvHeads * groupSize, queries, vDim];
}

/** The gradient of a problem's output, rounded to its format as the problem's own tensors are; null where it has none. */
export function encodeDout({ sizes, dout }: PlainProblem): Tensor | null {
  if (dout === undefined) return null;
  const { format, values } = dout;
  return { format, shape: outputShape(sizes), data: encodeWithSpecials(format, values) };
}

/** The inverse of `encodeDout`. */
export function decodeDout({ format, data }: Tensor): NonNullable<PlainProblem['dout']> {
  return { format, values: decodeToFloat64(data, formats[format]) };
}

/** The problem with its tensors rounded to their formats; values too large become the largest. */
export function encodeProblem(plain: PlainProblem): Problem {
  const tensor = (name: TensorName): Tensor => ({
    format: plain.formats[name],
    shape: tensorShape(name, plain.sizes),
    data: encodeWithSpecials(plain.formats[name], plain.values[name]),
    ...withScales(plain.factors?.[name]),
  });
  const { scale, causal, window, softcap, features, form } = plain;
  const problem: Problem = {
    q: tensor('q'),
    k: tensor('k'),
    v: tensor('v'),
    scale,
    causal,
    window,
    softcap,
    ...features,
  };
  const isPosed = form !== undefined && features?.sequences !== undefined;
  return isPosed ? storeProblem(problem, form) : problem;
}

function withScales(scales: TensorScales | undefined): Pick<Tensor, 'scales'> {
  return scales === undefined ? {} : { scales };
}

/** Rounds to the format; finite values saturate, infinities stay. */
function encodeWithSpecials(name: FormatName, values: Float64Array): Tensor['data'] {
  const format = formats[name];
  const clipped = values.map((x) =>
    Number.isFinite(x) ? Math.min(Math.max(x, -format.maxFinite), format.maxFinite) : x,
  );
  return encodeFromFloat64(format, clipped);
}

/**
 * The inverse of `encodeProblem`.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function decodeProblem(problem: Problem): PlainProblem {
  const { heads, ...sizes } = problemShape(problem);
  void heads;
  const decoded = (tensor: Tensor) => decodeToFloat64(tensor.data, formats[tensor.format]);
  const { q, k, v, scale, causal, window, softcap } = problem;
  const features = featuresOf(problem);
  const featureCount = Object.keys(features).length;
  const factors = tensorNames.flatMap((name) => {
    const scales = rank4Scales(problem[name]);
    return scales === undefined ? [] : [[name, scales] as const];
  });
  return {
    sizes,
    formats: { q: q.format, k: k.format, v: v.format },
    values: { q: decoded(q), k: decoded(k), v: decoded(v) },
    scale,
    causal,
    window,
    softcap,
    ...(featureCount > 0 ? { features } : {}),
    ...(factors.length > 0 ? { factors: Object.fromEntries(factors) } : {}),
  };
}

/** The factors of a tensor of rank 3 or 4 as those of one of rank 4. */
function rank4Scales({ shape, scales }: Tensor): TensorScales | undefined {
  if (scales === undefined || shape.length === 4) return scales;
  const factors = scales.factors.map((all) => ({
    ...all,
    shape: [1, ...all.shape],
    blocks: [1, ...all.blocks],
  }));
  return { ...scales, factors };
}

/** The features of a problem alone; the factors of its tensors are theirs. */
export function featuresOf(problem: Problem): ProblemFeatures {
  return Object.fromEntries(
    problemFeatures(problem).flatMap((name) => (name === 'scales' ? [] : [[name, problem[name]]])),
  );
}

/** Indices to keep, for each size. */
export type Selection = Readonly<Partial<Record<SizeName, readonly number[]>>>;

function everyIndex(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** The batches, heads, rows and columns of each tensor to keep. */
type KeptAxes = Readonly<Record<TensorName, readonly (readonly number[])[]>>;

/** The factors of the rows that are kept; a row's columns share one, whichever are kept. */
function factorsLeft(
  { sizes }: PlainProblem,
  factors: NonNullable<PlainProblem['factors']>,
  axes: KeptAxes,
): PlainProblem['factors'] {
  const entries = Object.entries(factors) as [TensorName, TensorScales][];
  return Object.fromEntries(
    entries.map(([name, scales]) => {
      const shape = tensorShape(name, sizes);
      const [, heads, rows] = shape;
      const [batches, keptHeads, keptRows, columns] = axes[name];
      const leading = [batches.length, keptHeads.length, keptRows.length];
      const rowAt = (index: number) => {
        const row = keptRows[index % leading[2]];
        const head = keptHeads[Math.floor(index / leading[2]) % leading[1]];
        const batch = batches[Math.floor(index / (leading[2] * leading[1]))];
        return (batch * heads + head) * rows + row;
      };
      const left = scalesOfRows({ shape, scales }, leading, rowAt) ?? scales;
      const ofColumns = left.factors.map((all) => ({
        ...all,
        blocks: [...all.blocks.slice(0, 3), Math.max(columns.length, 1)],
      }));
      return [name, { ...left, factors: ofColumns }];
    }),
  );
}

/** The elements at the kept indices of each of four axes. */
function gatherAxes(
  values: Float64Array,
  [, heads, rows, columns]: readonly number[],
  [batches, keptHeads, keptRows, keptColumns]: readonly (readonly number[])[],
): Float64Array {
  const out: number[] = [];
  for (const b of batches!)
    for (const h of keptHeads!)
      for (const r of keptRows!)
        for (const c of keptColumns!)
          out.push(values[((b * heads! + h) * rows! + r) * columns! + c]);
  return Float64Array.from(out);
}

/** The part of a problem that a selection leaves; a size without a list stays whole. */
export function selectPart(plain: PlainProblem, selection: Selection): PlainProblem {
  const kept = Object.fromEntries(
    sizeNames.map((name) => [name, selection[name] ?? everyIndex(plain.sizes[name])]),
  ) as Record<SizeName, readonly number[]>;
  const { groupSize } = plain.sizes;
  const queryHeads = kept.kvHeads.flatMap((head) =>
    kept.groupSize.map((member) => head * groupSize + member),
  );
  const axes = {
    q: [kept.batch, queryHeads, kept.queries, kept.qkDim],
    k: [kept.batch, kept.kvHeads, kept.keys, kept.qkDim],
    v: [kept.batch, kept.kvHeads, kept.keys, kept.vDim],
  };
  const gather = (name: TensorName): Float64Array =>
    gatherAxes(plain.values[name], tensorShape(name, plain.sizes), axes[name]);
  const { features, factors, dout } = plain;
  const { batch: batches, queries, keys } = kept;
  const rows = { batches, heads: queryHeads, kvHeads: kept.kvHeads, queries, keys };
  return {
    ...plain,
    ...(features === undefined ? {} : { features: arrangeFeatures(features, rows) }),
    ...(factors === undefined ? {} : { factors: factorsLeft(plain, factors, axes) }),
    sizes: Object.fromEntries(sizeNames.map((name) => [name, kept[name].length])) as Sizes,
    values: { q: gather('q'), k: gather('k'), v: gather('v') },
    ...(dout === undefined
      ? {}
      : {
          dout: {
            ...dout,
            values: gatherAxes(dout.values, outputShape(plain.sizes), [
              ...axes.q.slice(0, 3),
              kept.vDim,
            ]),
          },
        }),
  };
}
