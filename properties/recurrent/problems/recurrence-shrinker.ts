import {
  recurrentFamilies,
  usualStepLimit,
  type RecurrentLaw,
} from '../../../src/problem/index.js';
import { simplerElements, simplerRows, simplerTensors } from '../../problems/index.js';
import { axesOf, type Axis, type InputName } from './axes.js';
import type { RecurrentConstraints } from './constraints.js';
import {
  axisSizes,
  givenInputs,
  pickParts,
  sequenceRanges,
  withoutInputs,
  withValues,
  type PlainRecurrence,
} from './plain-recurrence.js';

/** Whole numbers from `first` up to `end`. */
function range(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
}

/** A problem with other sequences: of each kept one, its first token and end among all tokens. */
function ofSequences(
  plain: PlainRecurrence,
  kept: readonly { readonly sequence: number; readonly first: number; readonly end: number }[],
): PlainRecurrence {
  return pickParts(
    plain,
    {
      token: kept.flatMap(({ first, end }) => range(first, end)),
      sequence: kept.map(({ sequence }) => sequence),
    },
    kept.map(({ first, end }) => end - first),
  );
}

function* fewerSequences(plain: PlainRecurrence): Generator<PlainRecurrence> {
  const all = sequenceRanges(plain.lengths).map((ends, sequence) => ({ ...ends, sequence }));
  if (all.length > 1)
    for (const one of all) {
      yield ofSequences(plain, [one]);
      yield ofSequences(
        plain,
        all.filter((other) => other !== one),
      );
    }
  else if (plain.isPacked) yield { ...plain, isPacked: false };
}

/** Shorter sequences: the first or the last half, or one token less at either end; of a batch all alike, of packed ones each. */
function* fewerTokens(plain: PlainRecurrence): Generator<PlainRecurrence> {
  const all = sequenceRanges(plain.lengths).map((ends, sequence) => ({ ...ends, sequence }));
  const cuts: ((length: number) => readonly [number, number])[] = [
    (length) => [0, Math.ceil(length / 2)],
    (length) => [Math.floor(length / 2), length],
    (length) => [0, length - 1],
    (length) => [1, length],
  ];
  const groups = plain.isPacked ? all.map((one) => [one]) : [all];
  for (const group of groups)
    for (const cut of cuts) {
      const length = group[0].end - group[0].first;
      const [from, to] = cut(length);
      if (length < 2 || to - from >= length || to <= from) continue;
      yield ofSequences(
        plain,
        all.map((one) =>
          group.includes(one) ? { ...one, first: one.first + from, end: one.first + to } : one,
        ),
      );
    }
}

/** Fewer heads: one key head with its value heads, or one value head of each. */
function* fewerHeads(
  plain: PlainRecurrence,
  { groupSizes }: RecurrentConstraints,
): Generator<PlainRecurrence> {
  const { keyHeads, valueHeads } = plain;
  const group = valueHeads / keyHeads;
  if (keyHeads > 1)
    for (const head of range(0, keyHeads))
      yield pickParts(plain, {
        keyHead: [head],
        valueHead: range(head * group, (head + 1) * group),
      });
  for (const size of groupSizes ?? [1])
    if (size < group)
      for (const from of [0, group - size])
        yield pickParts(plain, {
          valueHead: range(0, keyHeads).flatMap((head) =>
            range(head * group + from, head * group + from + size),
          ),
        });
}

function* smallerDims(
  plain: PlainRecurrence,
  { dims }: RecurrentConstraints,
): Generator<PlainRecurrence> {
  for (const axis of ['keyDim', 'valueDim'] as const satisfies readonly Axis[]) {
    const size = plain[axis];
    const smaller = dims?.filter((dim) => dim < size) ?? [1, Math.ceil(size / 2), size - 1];
    for (const dim of new Set(smaller))
      if (dim >= 1 && dim < size)
        for (const from of [0, size - dim])
          yield pickParts(plain, { [axis]: range(from, from + dim) });
  }
}

function* plainerSettings(plain: PlainRecurrence): Generator<PlainRecurrence> {
  for (const name of ['dfinal_state', 'initial_state', 'z', 'D', 'dt_bias'] as const)
    if (plain.inputs[name] !== undefined) yield withoutInputs(plain, [name]);
  if (plain.epsilon !== null) yield { ...plain, epsilon: null };
  const { steps } = plain;
  if (steps === null && plain.scale !== 1) yield { ...plain, scale: 1 };
  if (steps !== null && steps.dtLimit.join() !== usualStepLimit.join())
    yield { ...plain, steps: { ...steps, dtLimit: usualStepLimit } };
}

/** Whether numbers are what a problem may have: gates and steps that do not grow states, write strengths from 0 to 2, keys that strengths of 2 do not let grow. */
function isInDomain(
  name: InputName,
  { inputs, keyDim, epsilon, family, steps }: PlainRecurrence,
): boolean {
  const { write }: RecurrentLaw = recurrentFamilies[family];
  const values = inputs[name]?.values ?? [];
  if (name === 'g' || name === 'A') return values.every((gate) => gate <= 0);
  if (name === 'dt' || name === 'dt_bias')
    return steps?.dtSoftplus === true || values.every((step) => step >= 0);
  if (name === 'beta') return values.every((strength) => strength >= 0 && strength <= 2);
  if (name !== 'k' || write === 'additive' || epsilon !== null) return true;
  for (let at = 0; at < values.length; at += keyDim)
    if (Math.hypot(...values.slice(at, at + keyDim)) > 1.01) return false;
  return true;
}

type Simplify = (values: Float64Array, dim: number) => Iterable<{ readonly values: Float64Array }>;

function* plainerValues(plain: PlainRecurrence, simplify: Simplify): Generator<PlainRecurrence> {
  const sizes = axisSizes(plain);
  for (const [name, { values }] of givenInputs(plain)) {
    const last = axesOf(name, plain.family).at(-1);
    const dim = last === 'keyDim' || last === 'valueDim' ? sizes[last] : 1;
    for (const { values: simpler } of simplify(values, dim)) {
      const candidate = withValues(plain, { [name]: simpler });
      if (isInDomain(name, candidate)) yield candidate;
    }
  }
}

/**
 * Simpler problems, boldest first: fewer sequences, tokens, heads and dimensions, plainer settings, then plainer values. Each is simpler by one of
 * these measures and no less simple by the others, so that taking one after the other comes to an end.
 */
export function* simplerRecurrences(
  plain: PlainRecurrence,
  constraints: RecurrentConstraints,
): Generator<PlainRecurrence> {
  yield* fewerSequences(plain);
  yield* fewerTokens(plain);
  yield* fewerHeads(plain, constraints);
  yield* smallerDims(plain, constraints);
  yield* plainerSettings(plain);
  yield* plainerValues(plain, simplerTensors);
  yield* plainerValues(plain, (values, dim) => simplerRows(values, dim, 0));
  yield* plainerValues(plain, (values) => simplerElements(values, 0));
}
