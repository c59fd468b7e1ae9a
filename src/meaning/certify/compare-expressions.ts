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
  return operation.name.trim();
}

/** The operands that only one of two values has: their expressions are none of the other's. */
function unlikeOperands(
  one: HashedRun,
  other: HashedRun,
  [left, right]: readonly [readonly number[], readonly number[]],
): readonly (readonly [x: number, y: number])[] {
  const hashesOf = ({ expressions }: HashedRun, operands: readonly number[]) =>
    operands.map((operand) => expressions.of(operand).join());
  const [hashes, others] = [hashesOf(one, left), hashesOf(other, right)];
  const isOnlyLeft = hashes.map((hash) => !others.includes(hash));
  const isOnlyRight = others.map((hash) => !hashes.includes(hash));
  const beside = left.flatMap((x, i): readonly (readonly [number, number])[] =>
    isOnlyLeft[i] && isOnlyRight[i] ? [[x, right[i]]] : [],
  );
  if (beside.length > 0) return beside;
  // Operands that count in either order.
  const [x, y] = [left.find((_, i) => isOnlyLeft[i]), right.find((_, i) => isOnlyRight[i])];
  return x === undefined || y === undefined ? [] : [[x, y]];
}

/**
 * Follows two expressions of unequal hashes down to where they part: as long as each side has an operand that the other has not, it
 * is there. Of several operands it follows the first whose bits differ in these runs, so that what parts explains bits that differ.
 */
export function findParting(
  one: HashedRun,
  other: HashedRun,
  values: readonly [number, number],
): Parting {
  const haveOtherBits = ([x, y]: readonly [number, number]) =>
    one.trace.bits[x] !== other.trace.bits[y] || one.trace.high[x] !== other.trace.high[y];
  let [x, y] = values;
  for (;;) {
    const [left, right] = [operandsOf(one.trace, x), operandsOf(other.trace, y)];
    const [ofX, ofY] = [one.trace.operationOf(x), other.trace.operationOf(y)];
    const isSameKind = ofX.name === ofY.name && left.length === right.length;
    const unlike = isSameKind ? unlikeOperands(one, other, [left, right]) : [];
    if (unlike.length === 0)
      return { sites: [ofX.site, ofY.site], what: [describe(one, x), describe(other, y)] };
    [x, y] = unlike.find(haveOtherBits) ?? unlike[0];
  }
}
