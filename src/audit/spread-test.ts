import type { AttentionReference } from '../../oracles/index.js';
import type { ElementBounds } from './element-bounds.js';
import { elementAt, type Coordinates } from './error-profile.js';

/** Rows whose errors are taken together: a tile of 128 queries, a head. */
export const spreadScopes = ['tile', 'head'] as const;
export type SpreadScope = (typeof spreadScopes)[number];

const rowsPerTile = 128;

/** The root mean square error of some rows against what independent roundings add up to. */
export interface SpreadResult {
  readonly scope: SpreadScope;
  /** Flat index over [batch, heads]. */
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
  /** Root mean square errors: found, expected, and exceeded with the stated probability only. */
  readonly measured: number;
  readonly expected: number;
  readonly limit: number;
}

/** The probabilistic leg of an audit. */
export interface SpreadTest {
  /** Elements whose error is beyond what independent roundings add up to. */
  readonly outside: number;
  /** Largest error / limit, and where. */
  readonly worstRatio: number;
  readonly worst: {
    readonly at: Coordinates;
    readonly error: number;
    readonly bound: number;
  } | null;
  /** Over all elements. */
  readonly measured: number;
  readonly expected: number;
  /** Per scope the result that is largest relative to its limit. */
  readonly results: readonly SpreadResult[];
}

/** How finely rows are told apart whose roundings may be the same. */
const sameRow = 2 ** 14;

/**
 * What has been collected of some rows. Rows whose roundings may be the same (equal queries) count as
 * one, with the sum of their energies.
 */
class Energy {
  #measured = 0;
  #systematic = 0;
  #units = new Map<string, number>();
  elements = 0;

  add(unit: string, measured: number, expected: number, systematic: number, elements: number) {
    this.#measured += measured;
    this.#systematic += systematic;
    this.#units.set(unit, (this.#units.get(unit) ?? 0) + expected);
    this.elements += elements;
  }

  /**
   * The tail of a sum of squares of sub-Gaussian variables (Hsu, Kakade and Zhang 2012, Theorem 2.1):
   * exceeds tr Σ + 2√(tr Σ² t) + 2‖Σ‖t with probability at most e^-t. Each row's part of tr Σ² is at
   * most the square of its part of tr Σ, and that of ‖Σ‖ at most its part of tr Σ.
   */
  result(t: number): Pick<SpreadResult, 'measured' | 'expected' | 'limit'> {
    let trace = 0;
    let squares = 0;
    let largest = 0;
    for (const unit of this.#units.values()) {
      trace += unit;
      squares += unit * unit;
      largest = Math.max(largest, unit);
    }
    const random = trace + 2 * Math.sqrt(squares * t) + 2 * largest * t;
    const mean = (energy: number) => Math.sqrt(energy / Math.max(this.elements, 1));
    return {
      measured: mean(this.#measured),
      expected: mean(trace),
      limit: mean((Math.sqrt(random) + Math.sqrt(this.#systematic)) ** 2),
    };
  }
}

/**
 * Tests the errors of an output against what roundings add up to that are independent and uniform
 * (equal weights of a row, and equal rows, round alike): every element, and the root mean square of
 * every tile of queries and of every head. All of it together fails a correct kernel with probability
 * at most `falseAlarmRate` under these premises; docs/bounds.md has the proofs.
 */
export function testSpread(
  reference: AttentionReference,
  out: Float64Array,
  bounds: ElementBounds,
  falseAlarmRate: number,
): SpreadTest {
  const { shape } = reference;
  const { queries, vDim } = shape;
  const headCount = shape.batch * shape.heads;
  const tiles = Math.ceil(queries / rowsPerTile);
  // A half for the elements, a quarter each for tiles and heads.
  const deviations = Math.sqrt(2 * Math.log((4 * Math.max(out.length, 1)) / falseAlarmRate));
  const exponents: Record<SpreadScope, number> = {
    tile: Math.log((4 * Math.max(headCount * tiles, 1)) / falseAlarmRate),
    head: Math.log((4 * Math.max(headCount, 1)) / falseAlarmRate),
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
    const result = { scope, head, firstRow, rows, ...energy.result(exponents[scope]) };
    const worst = worstOf.get(scope);
    const use = ({ measured, limit }: SpreadResult) => (measured === 0 ? 0 : measured / limit);
    if (worst === undefined || use(result) > use(worst)) worstOf.set(scope, result);
  };
  let outside = 0;
  let worstRatio = 0;
  let worst = -1;
  const all = new Energy();

  /** Adds one row to the energies, and tests its elements. */
  function addRow(row: number, energies: readonly Energy[]): void {
    let measured = 0;
    let expected = 0;
    let systematic = 0;
    let elements = 0;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const error = Math.abs(out[i]! - reference.out[i]!);
      const own = bounds.systematic[i]!;
      const deviation = bounds.deviation[i]!;
      const limit = Math.min(bounds.total[i]!, own + deviations * deviation);
      if (!Number.isFinite(error) || !Number.isFinite(limit)) continue;
      const ratio = error === 0 ? 0 : error / limit;
      if (ratio > 1) outside++;
      if (ratio > worstRatio) {
        worstRatio = ratio;
        worst = i;
      }
      measured += error * error;
      expected += deviation * deviation;
      systematic += own * own;
      elements++;
    }
    if (elements === 0) return;
    const unit = [reference.lse[row]!, reference.maximum[row]!, reference.out[row * vDim]!]
      .map((x) => Math.round(x * sameRow))
      .join();
    for (const energy of energies) energy.add(unit, measured, expected, systematic, elements);
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
            at: elementAt(shape, worst),
            error: Math.abs(out[worst]! - reference.out[worst]!),
            bound: Math.min(
              bounds.total[worst]!,
              bounds.systematic[worst]! + deviations * bounds.deviation[worst]!,
            ),
          },
    measured,
    expected,
    results: spreadScopes.flatMap((scope) => worstOf.get(scope) ?? []),
  };
}
