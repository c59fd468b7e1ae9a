import { recurrentTensorName } from '../../../src/problem/index.js';
import { isSameResult, NotApplicable } from '../../laws/index.js';
import {
  axesOf,
  axisSizes,
  placeOf,
  type Place,
  type PlainRecurrence,
  type TensorName,
} from '../problems/index.js';
import type { RecurrentNumbers, RecurrentRun } from './law.js';

const axisWords: Readonly<Record<keyof Place, string>> = {
  token: 'token',
  sequence: 'sequence',
  keyHead: 'key head',
  valueHead: 'value head',
  keyDim: 'key dimension',
  valueDim: 'column',
};

/** A place in words, as in "token 3, value head 1, column 0"; tokens are counted over all sequences. */
export function describeAxes(place: Place): string {
  const axes = Object.entries(place) as [keyof Place, number][];
  return axes.map(([axis, at]) => `${axisWords[axis]} ${at}`).join(', ');
}

/** What is compared of two runs. */
export interface NumbersCompared {
  /** Results, by default all that both have. */
  readonly names?: readonly TensorName[];
  /** Whether an element takes part; default: all do. */
  readonly counts?: (name: TensorName, place: Place, expected: number) => boolean;
  /** What the found number is expected to be; default: the other. */
  readonly factor?: (name: TensorName) => number;
}

/**
 * The first number in which two runs of problems of one shape differ, in a sentence; null for none. Signs of zeros and payloads of NaNs do not count.
 * @throws NotApplicable where nothing is compared
 */
export function numbersDiffer(
  plain: PlainRecurrence,
  usual: RecurrentNumbers,
  found: RecurrentNumbers,
  words: readonly [usual: string, changed: string],
  { names, counts = () => true, factor = () => 1 }: NumbersCompared = {},
): string | null {
  const sizes = axisSizes(plain);
  let compared = 0;
  for (const name of names ?? (Object.keys(usual) as TensorName[])) {
    const [expected, got] = [usual[name], found[name]];
    if (expected === undefined || got === undefined) continue;
    const axes = axesOf(name, plain.family);
    const multiple = factor(name);
    for (let i = 0; i < expected.length; i++) {
      const wanted = expected[i] * multiple;
      const place = placeOf(i, axes, sizes);
      if (!counts(name, place, wanted)) continue;
      compared++;
      if (!isSameResult(wanted, got[i]))
        return `${recurrentTensorName(plain.family, name)} at ${describeAxes(place)} is ${wanted} ${words[0]} but ${got[i]} ${words[1]}`;
    }
  }
  if (compared === 0) throw new NotApplicable('no result of the problem can be compared');
  return null;
}

/** The results of a run of which a law speaks, by name. */
export function numbersOf(
  { numbers }: RecurrentRun,
  names: readonly TensorName[],
): RecurrentNumbers {
  return Object.fromEntries(
    names.flatMap((name) => (numbers[name] === undefined ? [] : [[name, numbers[name]]])),
  );
}
