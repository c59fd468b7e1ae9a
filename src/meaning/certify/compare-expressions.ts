import type { ExpressionDomain } from '../domains/index.js';
import { decidedValue, noValue, type Operation, type Trace } from '../trace/index.js';

/** A traced run with the hashes of its values. */
export interface HashedRun {
  readonly trace: Trace;
  readonly expressions: ExpressionDomain;
  /** The name of an element of an input, for a reader. */
  readonly describeInput: (input: number, element: number) => string;
}

/** How two elements compare: the same expression, another, or at least one of them has none. */
export type ElementComparison = 'same' | 'other' | 'lost';

function isEqual(one: readonly number[], other: readonly number[]): boolean {
  return one.every((word, i) => word === other[i]);
}

/** Compares the expressions of two values; constants are the same where their bits are. */
export function compareValues(
  one: HashedRun,
  other: HashedRun,
  [x, y]: readonly [number, number],
  areBitsEqual: boolean,
): ElementComparison {
  if (x === noValue && y === noValue) return areBitsEqual ? 'same' : 'other';
  if (x <= decidedValue || y <= decidedValue) return 'lost';
  return isEqual(one.expressions.of(x), other.expressions.of(y)) ? 'same' : 'other';
}

/** The first place at which the trees of two expressions part, from the outputs down. */
export interface Parting {
  /** Places in the two programs; empty for an input or a constant. */
  readonly sites: readonly [string, string];
  /** What stands there, in words: an instruction, an input's element, a constant. */
  readonly what: readonly [string, string];
}

/** The operands of a value: those of an element of a product are its row of A, its row of B and its element of C. */
function operandsOf(trace: Trace, value: number): readonly number[] {
  const { origin } = trace.operationOf(value);
  const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
  switch (origin) {
    case 'function':
      return [a, b, c].filter((operand) => operand > decidedValue);
    case 'choice':
      return [a, b];
    case 'same':
      return b > decidedValue ? [a, b] : [a];
    case 'scale':
      return [a];
    case 'product': {
      const product = trace.products[a];
      const { n, k } = product;
      const [row, column] = [Math.floor(b / n), b % n];
      return [
        ...(product.c === null ? [] : [product.c[b]]),
        ...product.a.subarray(row * k, (row + 1) * k),
        ...product.b.subarray(column * k, (column + 1) * k),
      ];
    }
    default:
      return [];
  }
}

function describe({ trace, describeInput }: HashedRun, value: number): string {
  const operation: Operation = trace.operationOf(value);
  if (operation.origin === 'input') return describeInput(trace.a[value], trace.b[value]);
  if (operation.origin === 'constant') return `constant ${trace.numberOf(value)}`;
  return operation.name;
}

/**
 * Follows two expressions of unequal hashes down to where they part: as long as one operand of each side alone is unequal, it is
 * there.
 */
export function findParting(
  one: HashedRun,
  other: HashedRun,
  values: readonly [number, number],
): Parting {
  let [x, y] = values;
  for (;;) {
    const [left, right] = [operandsOf(one.trace, x), operandsOf(other.trace, y)];
    const isSameKind =
      one.trace.operationOf(x).name === other.trace.operationOf(y).name &&
      left.length === right.length;
    const hashesOf = ({ expressions }: HashedRun, operands: readonly number[]) =>
      operands.map((operand) => expressions.of(operand).join());
    const [hashes, others] = [hashesOf(one, left), hashesOf(other, right)];
    const onlyLeft = left.filter((_, i) => !others.includes(hashes[i]));
    const onlyRight = right.filter((_, i) => !hashes.includes(others[i]));
    if (!isSameKind || onlyLeft.length === 0 || onlyRight.length === 0)
      return {
        sites: [one.trace.operationOf(x).site, other.trace.operationOf(y).site],
        what: [describe(one, x), describe(other, y)],
      };
    [x, y] = [onlyLeft[0], onlyRight[0]];
  }
}
