import type { Random } from 'fast-check';
import { formats, type FormatName } from '../src/formats/index.js';
import { problemShape, visibleKeys, type Problem, type Window } from '../src/problem.js';
import { tensorNames, type PlainProblem } from './plain-problem.js';
import type { ResolvedConstraints, ScaleKind } from './problem-constraints.js';
import { randomValues } from './random-values.js';
import { drawSize, sizeNames, type Sizes } from './size-range.js';
import { drawValues, type ProblemValues } from './value-regimes.js';

function pick<T>(from: readonly T[], random: Random): T {
  return from[random.nextInt(0, from.length - 1)]!;
}

/** A feature that a constraint may fix, present once in `odds` when it does not. */
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

/** How far a window reaches to one side: no limit, nothing, or up to one key more than there are. */
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
  for (let row = 0; row < shape.queries; row++) {
    const { begin, end } = visibleKeys(problem, shape, row);
    if (begin >= end) return true;
  }
  return false;
}

/** Sizes and masks, mended where a query would see no key though it must. */
function drawLayout(constraints: ResolvedConstraints, random: Random) {
  const draw = (min: number, max: number) => random.nextInt(min, max);
  const sizes = Object.fromEntries(
    sizeNames.map((name) => [name, drawSize(constraints.sizes[name], draw)]),
  ) as Sizes;
  const causal = present(constraints.causal, 3, random);
  const window = present(constraints.window, 3, random) ? drawWindow(sizes.keys, random) : null;
  // Only the first queries can see nothing, and only when they outnumber the keys.
  if (constraints.emptyRows || sizes.queries <= sizes.keys) return { sizes, causal, window };
  if (constraints.causal === true) {
    const queries = Math.max(constraints.sizes.queries.min, sizes.keys);
    return { sizes: { ...sizes, queries, keys: Math.max(sizes.keys, queries) }, causal, window };
  }
  const unlimited = window && { left: Math.max(window.left, 0), right: -1 };
  return { sizes, causal: false, window: unlimited };
}

/** Puts one to three NaNs or infinities into the values, three times out of four. */
function plantSpecials(
  values: ProblemValues,
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

/** A random problem that meets the constraints. */
export function generateProblem(constraints: ResolvedConstraints, random: Random): PlainProblem {
  const format = pick(constraints.formats, random);
  const { sizes, causal, window } = drawLayout(constraints, random);
  const scale = drawScale(pick(constraints.scales, random), sizes.qkDim, random);
  const softcap = present(constraints.softcap, 4, random) ? drawSoftcap(random) : null;
  const regime = pick(constraints.regimes, random);
  const stream = randomValues(random.nextInt(0, 2 ** 31 - 1));
  const values = drawValues(regime, sizes, formats[format], stream);
  plantSpecials(values, format, constraints, random);
  return {
    sizes,
    formats: { q: format, k: format, v: format },
    values,
    scale,
    causal,
    window,
    softcap,
  };
}
