import type { Window } from '../src/problem.js';
import { selectPart, tensorNames, type PlainProblem } from './plain-problem.js';
import type { ResolvedConstraints } from './problem-constraints.js';
import { sizeNames, type SizeName } from './size-range.js';
import { simplerValues, valueComplexity } from './value-shrinker.js';

/** A scale that is the default one stays so when the dimension changes. */
function withDefaultScale(before: PlainProblem, after: PlainProblem): PlainProblem {
  const isDefault = before.scale === 1 / Math.sqrt(before.sizes.qkDim);
  return isDefault ? { ...after, scale: 1 / Math.sqrt(after.sizes.qkDim) } : after;
}

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** Below this a size also loses its elements one by one, not just from its ends. */
const singlyUpTo = 8;

/** Indices of a shorter axis, shortest first: from the front, from the back, without one element. */
function* shorterAxes(size: number, min: number): Generator<number[]> {
  for (let rest = size - min; rest > 0; rest = Math.floor(rest / 2)) {
    yield range(0, size - rest);
    yield range(rest, size - rest);
  }
  if (size > singlyUpTo || size <= min) return;
  for (let left = 1; left < size - 1; left++) yield range(0, size).filter((i) => i !== left);
}

function* smaller(plain: PlainProblem, constraints: ResolvedConstraints): Generator<PlainProblem> {
  const least = (name: SizeName) => Math.min(constraints.sizes[name].min, plain.sizes[name]);
  const shrinkable = sizeNames.filter((name) => plain.sizes[name] > least(name));
  if (shrinkable.length > 1)
    yield selectPart(
      plain,
      Object.fromEntries(shrinkable.map((name) => [name, range(0, least(name))])),
    );
  for (const name of shrinkable)
    for (const kept of shorterAxes(plain.sizes[name], least(name)))
      yield selectPart(plain, { [name]: kept });
}

function* simplerWindows(window: Window, allowNone: boolean): Generator<Window | null> {
  const { left, right } = window;
  if (allowNone) yield null;
  if (left >= 0 && right >= 0) {
    yield { left, right: -1 };
    yield { left: -1, right };
  }
  if (left > 0) yield { left: Math.floor(left / 2), right };
  if (right > 0) yield { left, right: Math.floor(right / 2) };
}

function* simplerMasks(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { causal, window, softcap } = plain;
  if (causal && constraints.causal !== true) yield { ...plain, causal: false };
  if (window !== null)
    for (const simpler of simplerWindows(window, constraints.window !== true))
      yield { ...plain, window: simpler };
  if (softcap === null) return;
  if (constraints.softcap !== true) yield { ...plain, softcap: null };
  if (softcap !== 1) yield { ...plain, softcap: 1 };
}

/** The plainest scale of the kinds allowed, nearest to the one there is. */
function* simplerScales(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { scale, sizes } = plain;
  const { scales } = constraints;
  const usual = 1 / Math.sqrt(sizes.qkDim);
  const candidates = [
    ...(scales.includes('default') ? [usual] : []),
    ...(scales.includes('odd') ? [1] : []),
    ...(scales.includes('negative') && scale < 0 ? [-1, -usual] : []),
  ];
  const rank = (x: number) => (x === usual ? 0 : valueComplexity(x) + 1);
  for (const candidate of candidates)
    if (rank(candidate) < rank(scale)) yield { ...plain, scale: candidate };
}

/**
 * Simpler problems than the given one that still meet the constraints' sizes and masks, boldest
 * first: without masks, smaller, with plainer numbers. Each is simpler by one of these measures and no
 * less simple by the others, so that taking one after the other comes to an end.
 */
export function* simplerProblems(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  yield* simplerMasks(plain, constraints);
  yield* simplerScales(plain, constraints);
  for (const candidate of smaller(plain, constraints)) yield withDefaultScale(plain, candidate);
  for (const name of tensorNames)
    for (const values of simplerValues(plain.values[name]))
      yield { ...plain, values: { ...plain.values, [name]: values } };
}
