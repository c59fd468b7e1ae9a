import type { Random } from 'fast-check';
import { formats, type FormatName } from '../../src/formats/index.js';
import { problemMask, problemShape, type Problem, type Window } from '../../src/problem/index.js';
import type { FeatureKind } from './features/feature-kinds.js';
import { drawKinds, kindSizes } from './features/feature-kinds.js';
import { encodeProblem, tensorNames, type PlainProblem } from './plain-problem.js';
import type { RegimeChoice, ResolvedConstraints } from './problem-constraints.js';
import { drawRegime, regimes, type RegimeName, type ScaleKind } from './regimes/index.js';
import {
  alignedDown,
  alignedSizes,
  alignedUp,
  drawSize,
  sizeNames,
  withinElements,
  type SizeName,
  type Sizes,
} from './sizes.js';
import { randomValues, type RandomValues } from './values.js';

function pick<T>(from: readonly T[], random: Random): T {
  return from[random.nextInt(0, from.length - 1)];
}

/** Whether a feature is present: as a constraint fixes it, else once in `odds`. */
function present(fixed: boolean | undefined, odds: number, random: Random): boolean {
  return fixed ?? random.nextInt(1, odds) === 1;
}

/** 2^x for x from `low` to `high`, with a random significand. */
function drawPositive(low: number, high: number, random: Random): number {
  return (1 + random.nextInt(0, 2 ** 20) / 2 ** 20) * 2 ** random.nextInt(low, high - 1);
}

function drawScale(kind: ScaleKind, qkDim: number, random: Random): number {
  const usual = 1 / Math.sqrt(qkDim);
  const drawers: Readonly<Record<ScaleKind, () => number>> = {
    default: () => usual,
    zero: () => 0,
    odd: () => (random.nextBoolean() ? 1 : drawPositive(-12, 6, random)),
    negative: () => -(random.nextBoolean() ? usual : drawPositive(-12, 6, random)),
  };
  return drawers[kind]();
}

const usualSoftcaps: readonly number[] = [0.5, 1, 15, 30, 50];

function drawSoftcap(random: Random): number {
  return random.nextBoolean() ? pick(usualSoftcaps, random) : drawPositive(-6, 12, random);
}

/** The reach of a window to one side: no limit, nothing, or up to one key more than there are. */
function drawReach(keys: number, random: Random): number {
  return pick([-1, 0, random.nextInt(0, keys + 1), random.nextInt(0, keys + 1)], random);
}

function drawWindow(keys: number, random: Random): Window {
  const left = drawReach(keys, random);
  const right = drawReach(keys, random);
  return left === -1 && right === -1
    ? { left: random.nextInt(0, keys + 1), right }
    : { left, right };
}

/** Whether the masks leave some query without any key. */
export function hasEmptyRows(problem: Problem): boolean {
  const shape = problemShape(problem);
  const mask = problemMask(problem, shape);
  for (let head = 0; head < shape.batch * shape.heads; head++)
    for (let query = 0; query < shape.queries; query++)
      if (mask.ranges(head, query).length === 0) return true;
  return false;
}

/** The most keys beyond a whole number of blocks, in a last block that few queries see. */
const mostKeysBeyond = 8;
/** The most queries beyond the fewest that such a problem needs. */
const mostQueriesMore = 32;

/**
 * Queries and keys such that causal rows see nothing of the last block, which kernels that go from the
 * last block to the first visit first; null where the ranges hold no such sizes.
 */
function drawMaskedBlock(
  { sizes: { queries, keys } }: RegimeChoice,
  blockKeys: number,
  random: Random,
): Pick<Sizes, 'queries' | 'keys'> | null {
  const beyond = random.nextInt(1, mostKeysBeyond);
  const fewest = Math.max(1, Math.ceil((keys.min - beyond) / blockKeys));
  const most = Math.floor((keys.max - beyond) / blockKeys);
  const leastQueries = Math.max(queries.min, beyond + 1);
  if (fewest > most || leastQueries > queries.max) return null;
  return {
    keys: random.nextInt(fewest, most) * blockKeys + beyond,
    queries: random.nextInt(leastQueries, Math.min(queries.max, leastQueries + mostQueriesMore)),
  };
}

/** Sizes within the most elements; one dimension for all where dimensions are listed. */
function drawSizes(
  choice: RegimeChoice,
  { maximumElements }: ResolvedConstraints,
  lengths: Partial<Sizes>,
  random: Random,
): Sizes {
  const draw = (min: number, max: number) => random.nextInt(min, max);
  const drawn = Object.fromEntries(
    sizeNames.map((name) => [name, drawSize(choice.sizes[name], draw)]),
  ) as Sizes;
  const dim = choice.dims === null ? null : pick(choice.dims, random);
  const sizes = withinElements(
    { ...drawn, ...lengths, ...(dim === null ? {} : { qkDim: dim, vDim: dim }) },
    choice,
    maximumElements,
    draw,
  );
  return alignedSizes(sizes, choice);
}

/**
 * Sizes and masks, mended where a query would see no key though it must.
 * @param wanted sizes in place of those drawn
 */
function drawLayout(
  choice: RegimeChoice,
  constraints: ResolvedConstraints,
  wanted: Partial<Sizes>,
  random: Random,
) {
  const { blockKeys } = constraints.tiling;
  const masked =
    constraints.causal !== false && random.nextInt(1, 4) === 1
      ? drawMaskedBlock(choice, blockKeys, random)
      : null;
  const sizes = drawSizes(choice, constraints, { ...masked, ...wanted }, random);
  const causal = present(constraints.causal ?? (masked === null ? undefined : true), 3, random);
  const window = present(constraints.window, 3, random) ? drawWindow(sizes.keys, random) : null;
  // Only the first queries can see nothing, and only when they outnumber the keys.
  if (constraints.emptyRows || sizes.queries <= sizes.keys) return { sizes, causal, window };
  if (constraints.causal === true) {
    const { multiples } = choice;
    const fewer = alignedDown(sizes.keys, multiples.queries);
    const queries = Math.max(choice.sizes.queries.min, fewer);
    const keys = alignedUp(Math.max(sizes.keys, queries), multiples.keys);
    return { sizes: { ...sizes, queries, keys }, causal, window };
  }
  const unlimited = window && { left: Math.max(window.left, 0), right: -1 };
  return { sizes, causal: false, window: unlimited };
}

/** Puts one to three NaNs or infinities into the values, three times out of four. */
function plantSpecials(
  values: PlainProblem['values'],
  format: FormatName,
  constraints: ResolvedConstraints,
  random: Random,
): void {
  const specials = [
    ...(constraints.specialValues.includes('nan') ? [NaN] : []),
    ...(constraints.specialValues.includes('infinity') && formats[format].specials === 'ieee'
      ? [Infinity, -Infinity]
      : []),
  ];
  if (specials.length === 0) return;
  for (let count = random.nextInt(0, 3); count > 0; count--) {
    const tensor = values[pick(tensorNames, random)];
    if (tensor.length > 0) tensor[random.nextInt(0, tensor.length - 1)] = pick(specials, random);
  }
}

/** Sizes that features and the regime have, in place of those drawn. */
function wantedSizes(
  choice: RegimeChoice,
  { tiling }: ResolvedConstraints,
  kinds: readonly FeatureKind[],
  random: RandomValues,
): Partial<Sizes> {
  const ofKinds = kindSizes(kinds, random);
  const fitting = Object.entries(ofKinds).filter(
    ([name, size]) => size >= choice.sizes[name as SizeName].min,
  );
  const ofRegime = regimes[choice.name].lengths?.(choice.sizes, tiling, random);
  return { ...Object.fromEntries(fitting), ...ofRegime };
}

/** The problem without the features that may hide keys, where they leave a query without any. */
function withoutEmptyRows(plain: PlainProblem): PlainProblem {
  const { features } = plain;
  if (features === undefined || !hasEmptyRows(encodeProblem(plain))) return plain;
  const { mask, bias, segments, blockMask, keyLists, sequences, ...rest } = features;
  void [mask, bias, segments, blockMask, keyLists, sequences];
  // Kept weights and slopes may have an axis of the sequences.
  const { dropout, alibiSlopes, ...others } = rest;
  void [dropout, alibiSlopes];
  return { ...plain, features: sequences === undefined ? rest : others };
}

/** A problem, and the regime it was drawn from. */
interface GeneratedProblem {
  readonly plain: PlainProblem;
  readonly regime: RegimeName;
}

/** A random problem that meets the constraints. */
export function generateProblem(
  constraints: ResolvedConstraints,
  random: Random,
): GeneratedProblem {
  const choice = pick(constraints.choices, random);
  const format = pick(choice.formats, random);
  // Problems without features are what they were before there were any.
  const features =
    choice.features.length === 0 && regimes[choice.name].lengths === undefined
      ? null
      : randomValues(random.nextInt(0, 2 ** 31 - 1));
  const kinds = features === null ? [] : drawKinds(choice.features, choice.needs, features);
  const { sizes, causal, window } = drawLayout(
    choice,
    constraints,
    features === null ? {} : wantedSizes(choice, constraints, kinds, features),
    random,
  );
  const scaleKind = pick(choice.scales, random);
  const scale = drawScale(scaleKind, sizes.qkDim, random);
  const softcap = present(constraints.softcap, 4, random) ? drawSoftcap(random) : null;
  const stream = randomValues(random.nextInt(0, 2 ** 31 - 1));
  const plain = drawRegime(
    choice.name,
    {
      sizes,
      scaleKind,
      tiling: constraints.tiling,
      format: formats[format],
      random: stream,
    },
    { scale, causal, window, softcap },
    kinds,
  );
  plantSpecials(plain.values, format, constraints, random);
  return { plain: constraints.emptyRows ? plain : withoutEmptyRows(plain), regime: choice.name };
}
