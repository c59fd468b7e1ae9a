import { rowElements } from '../problem/index.js';
import type { CombinedBounds } from './bounds/index.js';
import { boundsOf, type ElementBounds } from './element-bounds.js';
import {
  type ComparedQuantity,
  type ComparedValues,
  type Coordinates,
  placeOf,
} from './kernel-outputs.js';
import type { RowsOfHead } from './structure/error-statistic.js';

/** Rows whose errors are taken together: a tile of 128 queries, a head. */
export const spreadScopes = ['tile', 'head'] as const;
/** One of {@link spreadScopes}. */
export type SpreadScope = (typeof spreadScopes)[number];

const rowsPerTile = 128;

/** The root mean square error of some rows against the sum of independent roundings. */
export interface SpreadResult extends RowsOfHead {
  readonly scope: SpreadScope;
  /** Root mean square errors: found, expected, and exceeded with the stated probability only. */
  readonly measured: number;
  readonly expected: number;
  readonly limit: number;
}

/** The probabilistic leg of an audit. */
export interface SpreadTest {
  /** Number of elements whose error is beyond the sum of independent roundings. */
  readonly outside: number;
  /** The largest error / limit, and its place. */
  readonly worstRatio: number;
  readonly worst: {
    readonly at: Coordinates;
    readonly error: number;
    readonly bound: number;
  } | null;
  /** Root mean square errors over all elements. */
  readonly measured: number;
  readonly expected: number;
  /** The result of each scope that is largest relative to its limit. */
  readonly results: readonly SpreadResult[];
}

/** Sums of squares over elements: of the errors, and of the parts that they are expected to have. */
interface Squares {
  measured: number;
  systematic: number;
  known: number;
  random: number;
  elements: number;
}

function noSquares(): Squares {
  return { measured: 0, systematic: 0, known: 0, random: 0, elements: 0 };
}

function addSquares(to: Squares, from: Readonly<Squares>): void {
  for (const name of Object.keys(to) as (keyof Squares)[]) to[name] += from[name];
}

/** Sums of squares of some rows. Rows of one unit may err alike and count as one. */
class Energy {
  readonly #all = noSquares();
  readonly #units = new Map<number, Squares>();

  add(unit: number, row: Readonly<Squares>): void {
    addSquares(this.#all, row);
    const known = this.#units.get(unit) ?? noSquares();
    addSquares(known, row);
    this.#units.set(unit, known);
  }

  get elements(): number {
    return this.#all.elements;
  }

  /**
   * The tail of a sum of squares of sub-Gaussian variables (Hsu, Kakade and Zhang 2012, Theorem 2.1): exceeds
   * tr Σ + 2√(tr Σ² t) + 2‖Σ‖t with probability at most e^-t. Each unit's part of tr Σ² is at most the square
   * of its part of tr Σ, and that of ‖Σ‖ at most its part of tr Σ. The product with the known part exceeds
   * √(2t Σ known·random) over the units with probability at most e^-t too.
   */
  result(t: number): Pick<SpreadResult, 'measured' | 'expected' | 'limit'> {
    const { measured, systematic, known, random } = this.#all;
    let squares = 0;
    let products = 0;
    let largest = 0;
    for (const unit of this.#units.values()) {
      squares += unit.random * unit.random;
      products += unit.known * unit.random;
      largest = Math.max(largest, unit.random);
    }
    const most =
      known +
      2 * Math.sqrt(2 * t * products) +
      (random + 2 * Math.sqrt(squares * t) + 2 * largest * t);
    const mean = (energy: number) => Math.sqrt(energy / Math.max(this.elements, 1));
    return {
      measured: mean(measured),
      expected: mean(known + random),
      limit: mean((Math.sqrt(most) + Math.sqrt(systematic)) ** 2),
    };
  }
}

/**
 * Tests the errors of an output against sums of roundings, the known ones as they are, the others independent and uniform (but alike for
 * weights of a row, and for rows, that may round alike): every element, and the root mean square of every tile of queries and of every
 * head. All of it together fails a correct kernel with probability at most `falseAlarmRate` under these premises; docs/theory/bounds.md has the
 * proofs.
 */
export function testSpread(
  compared: ComparedQuantity,
  bounds: ElementBounds,
  falseAlarmRate: number,
): SpreadTest {
  const spreads = { ofElements: boundsOf(bounds, compared.quantity), unit: bounds.unit };
  return testSpreads(compared, spreads, falseAlarmRate);
}

/** The spread of the errors of a quantity, and the rows that may err alike: those of one number. */
export interface Spreads {
  readonly ofElements: CombinedBounds;
  readonly unit: Int32Array;
}

/**
 * `testSpread` of any quantity of vectors: its rows are those of the quantity's third axis.
 */
export function testSpreads(
  { quantity, shape, exact: oracle, values: out, isSpecialRow }: ComparedValues,
  { ofElements, unit }: Spreads,
  falseAlarmRate: number,
): SpreadTest {
  const { values: exact } = oracle;
  const [batch, heads, rows] = quantity.axes;
  const queries = shape[rows];
  const vDim = rowElements(quantity, shape);
  const headCount = shape[batch] * shape[heads];
  const tiles = Math.ceil(queries / rowsPerTile);
  // A half for the elements, a quarter each for tiles and heads, where two things may go wrong.
  const deviations = Math.sqrt(2 * Math.log((4 * Math.max(out.length, 1)) / falseAlarmRate));
  const exponents: Record<SpreadScope, number> = {
    tile: Math.log((8 * Math.max(headCount * tiles, 1)) / falseAlarmRate),
    head: Math.log((8 * Math.max(headCount, 1)) / falseAlarmRate),
  };
  const worstOf = new Map<SpreadScope, SpreadResult>();
  const judge = (
    scope: SpreadScope,
    energy: Energy,
    head: number,
    firstRow: number,
    rows: number,
  ) => {
    if (energy.elements === 0) return;
    const lastRow = firstRow + rows - 1;
    const result = { scope, head, firstRow, rows, lastRow, ...energy.result(exponents[scope]) };
    if (Number.isNaN(result.limit))
      throw new Error(`the spread of the ${scope} of head ${head} from query ${firstRow} is NaN`);
    const worst = worstOf.get(scope);
    const use = ({ measured, limit }: SpreadResult) => (measured === 0 ? 0 : measured / limit);
    if (worst === undefined || use(result) > use(worst)) worstOf.set(scope, result);
  };
  let outside = 0;
  let worstRatio = 0;
  let worst = -1;
  const all = new Energy();

  /** The mean square of the known part of a row's errors. */
  const knownOfRow = (row: number): number => {
    let sum = 0;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) sum += ofElements.known[i] ** 2;
    return sum / vDim;
  };
  // The known part of one element depends on every bit of the kernel's configuration, that of a row does not:
  // no element is allowed less than if its known part were a random one of the row's size.
  const limitOf = (i: number, ofRow: number): number => {
    const known = ofElements.known[i];
    // Nothing is known of the element: ∞ − ∞.
    if (ofElements.deviation[i] === Infinity) return Infinity;
    const random = Math.max(0, ofElements.deviation[i] ** 2 - known ** 2);
    const spread = Math.max(
      known + deviations * Math.sqrt(random),
      deviations * Math.sqrt(random + ofRow),
    );
    return Math.min(ofElements.total[i], ofElements.systematic[i] + spread);
  };

  /** Adds one row to the energies, and tests its elements. */
  function addRow(row: number, energies: readonly Energy[]): void {
    // Rows with infinities or NaNs have a worst case only.
    if (isSpecialRow(row)) return;
    const squares = noSquares();
    const ofRow = knownOfRow(row);
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const error = Math.abs(out[i] - exact[i]);
      const limit = limitOf(i, ofRow);
      if (!Number.isFinite(error) || limit === Infinity) continue;
      if (Number.isNaN(limit)) throw new Error(`the spread of element ${i} is NaN`);
      const ratio = error === 0 ? 0 : error / limit;
      if (ratio > 1) outside++;
      if (ratio > worstRatio) {
        worstRatio = ratio;
        worst = i;
      }
      const known = ofElements.known[i] ** 2;
      squares.measured += error * error;
      squares.systematic += ofElements.systematic[i] ** 2;
      squares.known += known;
      squares.random += Math.max(0, ofElements.deviation[i] ** 2 - known);
      squares.elements++;
    }
    if (squares.elements === 0) return;
    for (const energy of energies) energy.add(unit[row], squares);
  }

  for (let head = 0; head < headCount; head++) {
    const ofHead = new Energy();
    for (let first = 0; first < queries; first += rowsPerTile) {
      const ofTile = new Energy();
      const rows = Math.min(rowsPerTile, queries - first);
      for (let i = 0; i < rows; i++) addRow(head * queries + first + i, [ofTile, ofHead, all]);
      judge('tile', ofTile, head, first, rows);
    }
    judge('head', ofHead, head, 0, queries);
  }
  const { measured, expected } = all.result(0);
  return {
    outside,
    worstRatio,
    worst:
      worst < 0
        ? null
        : {
            at: placeOf(quantity, shape, worst),
            error: Math.abs(out[worst] - exact[worst]),
            bound: limitOf(worst, knownOfRow(Math.floor(worst / vDim))),
          },
    measured,
    expected,
    results: spreadScopes.flatMap((scope) => worstOf.get(scope) ?? []),
  };
}
