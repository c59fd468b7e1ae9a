import {
  axesOf,
  axisSizes,
  givenInputs,
  placeOf,
  withValues,
  type InputName,
  type Place,
  type PlainRecurrence,
} from '../problems/index.js';

/** The problem with other numbers at some places of its inputs. */
export function changedAt(
  plain: PlainRecurrence,
  isChanged: (name: InputName, place: Place) => boolean,
  change: (name: InputName, x: number) => number = otherNumber,
): PlainRecurrence {
  const sizes = axisSizes(plain);
  const changed = givenInputs(plain).map(([name, { values }]) => {
    const axes = axesOf(name, plain.family);
    return [
      name,
      values.map((x, i) => (isChanged(name, placeOf(i, axes, sizes)) ? change(name, x) : x)),
    ] as const;
  });
  return withValues(plain, Object.fromEntries(changed));
}

/** Another number of the same input: every format has it, and it does not let a state grow. */
function otherNumber(name: InputName, x: number): number {
  if (name === 'g') return x < -1 ? -0.5 : -2;
  if (name === 'beta') return x > 0.5 ? 0.25 : 1;
  // Half of a step or of A is one that lets no state grow either.
  if (name === 'dt' || name === 'dt_bias') return x === 0 ? 0.25 : x / 2;
  if (name === 'A') return x === 0 ? -1 : x / 2;
  // Keys keep their length, which bounds what strengths of 2 make of them.
  if (name === 'k') return -x;
  // Twice as large, since k and v of the other sign write the same.
  return x === 0 ? 1 : -2 * x;
}

/** The sequence of every token. */
export function sequenceOfTokens({ lengths }: PlainRecurrence): readonly number[] {
  return lengths.flatMap((length, sequence) => Array.from({ length }, () => sequence));
}
