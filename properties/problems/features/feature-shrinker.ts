import { decodeTensor } from '../../../src/formats/index.js';
import {
  type BlockMask,
  type BooleanTensor,
  readFeatures,
  type ProblemFeatures,
  type Sequence,
  type Tensor,
} from '../../../src/problem/index.js';
import { selectPart, tensorNames, type PlainProblem } from '../plain-problem.js';
import type { ResolvedConstraints } from '../problem-constraints.js';
import { valueComplexity } from '../value-shrinker.js';
import { arrangeFeatures } from './arrange-features.js';
import { simplerFeature } from './simpler-features.js';
import { formComplexity, simplerForms } from './stored-forms.js';

function places(count: number): number[] {
  return Array.from({ length: count }, (_, place) => place);
}

/** The features with some of the sequences left and the others empty, and the tensors that broadcast to them. */
function withSequences(
  features: ProblemFeatures,
  sequences: readonly Sequence[],
  kept: readonly number[],
  heads: number,
): ProblemFeatures {
  const { sequences: all, ...rest } = features;
  void all;
  const most = (of: (sequence: Sequence) => number) =>
    sequences.reduce((largest, sequence) => Math.max(largest, of(sequence)), 0);
  return {
    ...arrangeFeatures(rest, {
      batches: kept,
      heads: places(heads),
      queries: places(most((one) => one.queries)),
      keys: places(most((one) => one.keys)),
    }),
    sequences: kept.map((index) => sequences[index]),
  };
}

/** The sequences without those that are empty, all of them or the last. */
function* withoutEmpty(
  features: ProblemFeatures,
  sequences: readonly Sequence[],
  heads: number,
): Generator<ProblemFeatures> {
  const all = places(sequences.length);
  const isEmpty = (index: number) => sequences[index].queries + sequences[index].keys === 0;
  const kept = all.filter((index) => !isEmpty(index));
  const last = all.filter(isEmpty).at(-1);
  if (last === undefined) return;
  if (kept.length > 0) yield withSequences(features, sequences, kept, heads);
  const others = all.filter((index) => index !== last);
  if (others.length > 0) yield withSequences(features, sequences, others, heads);
}

/** Fewer sequences: without those that are empty, and without the rows of one. */
function* fewerSequences(
  plain: PlainProblem,
  { sizes: ranges, multiples }: ResolvedConstraints,
): Generator<PlainProblem> {
  const { features, sizes } = plain;
  const sequences = features?.sequences;
  if (features === undefined || sequences === undefined) return;
  const heads = sizes.kvHeads * sizes.groupSize;
  for (const compact of withoutEmpty(features, sequences, heads))
    yield { ...plain, features: compact };
  for (const { firstQuery, queries, firstKey, keys } of sequences) {
    if (queries + keys === 0) continue;
    const left = {
      queries: places(sizes.queries).filter((i) => i < firstQuery || i >= firstQuery + queries),
      keys: places(sizes.keys).filter((i) => i < firstKey || i >= firstKey + keys),
    };
    const isAllowed = (['queries', 'keys'] as const).every(
      (name) =>
        left[name].length >= Math.min(ranges[name].min, sizes[name]) &&
        left[name].length % (multiples[name] ?? 1) === 0,
    );
    if (isAllowed) yield selectPart(plain, left);
  }
}

/** Fewer and plainer factors of Q, K and V. */
function* simplerFactors(plain: PlainProblem): Generator<PlainProblem> {
  const { factors } = plain;
  if (factors === undefined) return;
  const { factors: all, ...without } = plain;
  void all;
  yield without;
  for (const name of tensorNames) {
    const { [name]: dropped, ...others } = factors;
    if (dropped !== undefined && Object.keys(others).length > 0)
      yield { ...plain, factors: others };
  }
}

/** The features without sequences; null if there are none, or if other tensors would change their meaning. */
function withoutSequences(features: ProblemFeatures): ProblemFeatures | null {
  const { sequences, mask, bias, dropout, alibiSlopes, ...rest } = features;
  const isFree = [mask, bias, dropout, alibiSlopes].every((feature) => feature === undefined);
  return sequences !== undefined && isFree ? rest : null;
}

function* fewerFeatures(features: ProblemFeatures): Generator<ProblemFeatures> {
  const names = Object.keys(features) as (keyof ProblemFeatures)[];
  if (names.length > 1) yield {};
  for (const name of names) {
    if (name === 'sequences') continue;
    const { [name]: dropped, ...rest } = features;
    void dropped;
    yield rest;
  }
  const whole = withoutSequences(features);
  if (whole !== null) yield whole;
}

/** The complexity of features, 0 for none: simpler problems have less of it. */
function featureComplexity({ features = {}, form, factors = {} }: PlainProblem): number {
  const ofValues = (tensor: Tensor) =>
    tensor.data.length + decodeTensor(tensor).reduce((sum, x) => sum + valueComplexity(x), 0);
  const ofTruths = ({ data }: BooleanTensor) =>
    data.length + data.reduce((sum, x) => sum + (x === 0 ? 1 : 0), 0);
  const ofBlocks = (blocks: BlockMask) =>
    blocks.indices.data.length - blocks.counts.data.reduce((sum, count) => sum + count, 0);
  const ofFeatures = readFeatures(features, {
    mask: ofTruths,
    bias: ofValues,
    alibiSlopes: ofValues,
    sink: ({ logits }) => ofValues(logits),
    segments: ({ queries, keys }) => new Set([...queries.data, ...keys.data]).size,
    prefix: (prefix) => prefix,
    blockMask: ofBlocks,
    keyLists: ({ indices }) =>
      indices.data.length + indices.data.reduce((sum, entry) => sum + (entry < 0 ? 0 : 1), 0),
    dropout: ({ kept, probability }) => ofTruths(kept) + 10 * valueComplexity(probability),
    sequences: ({ length }) => length,
    // None is drawn, so that none is there to be simplified.
    keyRanges: () => 0,
    rows: () => 0,
  });
  const factorTensors = Object.keys(factors).length;
  return (
    10 * Object.keys(features).length +
    10 * factorTensors +
    ofFeatures.reduce((sum, one) => sum + one, 0) +
    formComplexity(form)
  );
}

/** Whether the mask, if there is one, leaves some key visible. */
function isSound({ features }: PlainProblem): boolean {
  return features?.mask?.data.includes(1) ?? true;
}

/**
 * Problems with fewer or simpler features: without them, one after the other; masks all true and narrower,
 * numbers 0 or 1, fewer documents and sequences, smaller pages, plainer forms. Each is simpler by `featureComplexity`.
 */
export function* simplerFeatures(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { features, form } = plain;
  if (features === undefined && plain.factors === undefined) return;
  const before = featureComplexity(plain);
  for (const simpler of candidates(plain, constraints)) {
    const isSmaller = simpler.sizes.queries + simpler.sizes.keys < rowsOf(plain);
    if (!isSmaller && featureComplexity(simpler) >= before) continue;
    if (isSound(simpler)) yield simpler;
  }
  if (form === undefined) return;
  for (const simpler of simplerForms(form, constraints.features))
    if (formComplexity(simpler ?? undefined) < formComplexity(form))
      yield { ...plain, form: simpler ?? undefined };
}

function rowsOf({ sizes }: PlainProblem): number {
  return sizes.queries + sizes.keys;
}

function* candidates(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { features } = plain;
  if (features !== undefined) {
    for (const fewer of fewerFeatures(features)) yield { ...plain, features: fewer };
    yield* fewerSequences(plain, constraints);
    for (const name of Object.keys(features) as (keyof ProblemFeatures)[])
      for (const simpler of simplerFeature(name, features)) yield { ...plain, features: simpler };
  }
  yield* simplerFactors(plain);
}
