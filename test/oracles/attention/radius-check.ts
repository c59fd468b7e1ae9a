import { describeProblem } from '../../../properties/index.js';
import type { Problem } from '../../../src/problem/index.js';
import type { LevelledRow, Solver } from './oracle-levels.js';
import type { ReferenceAttention } from './reference-attention.js';

/** Errors as shares of their radii, by level of the oracle. */
export class RadiusUse {
  readonly #ratios = new Map<string, number[]>();
  #rows = 0;

  add(level: string, ratio: number): void {
    const ratios = this.#ratios.get(level) ?? [];
    this.#ratios.set(level, ratios);
    ratios.push(ratio);
  }

  countRow(): void {
    this.#rows++;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Levels met, with the number of elements, and the largest and median share of the radius used. */
  summary(): Record<string, { elements: number; largest: number; median: number }> {
    return Object.fromEntries(
      Array.from(this.#ratios, ([level, ratios]) => {
        const sorted = Float64Array.from(ratios).sort();
        return [
          level,
          {
            elements: sorted.length,
            largest: sorted.at(-1) ?? 0,
            median: sorted[sorted.length >> 1] ?? 0,
          },
        ];
      }),
    );
  }
}

/** What is wrong with a row, or null. */
function rowFault(
  reference: ReferenceAttention,
  row: number,
  { result, level }: LevelledRow,
  use: RadiusUse,
): string | null {
  const empty = reference.visible(row).length === 0;
  for (let c = 0; c < reference.vDim; c++) {
    const [out, radius] = [result.out[c], result.outRadius[c]];
    if (!(radius < Infinity)) continue;
    const distance = reference.outDistance(row, c, out);
    if (!(distance <= radius + reference.outError(row, c)))
      return `O[${row}][${c}] = ${out} by ${level} is off by ${distance}, radius ${radius}`;
    if (radius > 0) use.add(level, distance / radius);
    const exact = reference.magnitude(row, c);
    const magnitude = result.magnitude[c];
    if (!(Math.abs(magnitude - exact) <= 2 * radius + 2 ** -40 * exact + 2 ** -1060))
      return `Σ p|v|[${row}][${c}] = ${magnitude} by ${level}, exact ${exact}`;
  }
  const { lse, lseRadius, maximum, denominator } = result;
  if (empty)
    return level === 'empty' &&
      lse === reference.lse(row) &&
      lseRadius === 0 &&
      denominator === reference.denominator(row)
      ? null
      : `row ${row} sees no key but is ${level} with LSE ${lse} ± ${lseRadius}`;
  if (!(lseRadius < Infinity)) return null;
  if (!Number.isFinite(lse))
    return reference.lse(row) === lse ? null : `LSE[${row}] = ${lse}, exact ${reference.lse(row)}`;
  const distance = reference.lseDistance(row, lse);
  if (!(distance <= lseRadius + reference.lseError))
    return `LSE[${row}] = ${lse} by ${level} is off by ${distance}, radius ${lseRadius}`;
  use.add(`${level} lse`, distance / lseRadius);
  const largest = reference.maximum(row);
  const size = Math.abs(largest) + 2 * reference.addendSize(row);
  if (!(Math.abs(maximum - largest) <= 2 * lseRadius + 2 ** -48 * size))
    return `maximum[${row}] = ${maximum} by ${level}, exact ${largest}`;
  const sum = reference.denominator(row);
  if (!(Math.abs(denominator - sum) <= 2 * lseRadius + 2 ** -48 * Math.abs(sum) + 2 ** -48))
    return `the denominator of row ${row} is ${denominator} by ${level}, exact ${sum}`;
  return null;
}

/** Throws unless every O and LSE that the solver finds is within its radius of the reference. */
export function assertWithinRadii(
  problem: Problem,
  reference: ReferenceAttention,
  solve: Solver,
  use: RadiusUse,
): void {
  const rows = solve(problem);
  if (rows.length !== reference.rows)
    throw new Error(`${rows.length} rows for ${reference.rows}\n${describeProblem(problem)}`);
  rows.forEach((row, index) => {
    use.countRow();
    const fault = rowFault(reference, index, row, use);
    if (fault !== null) throw new Error(`${fault}\n${describeProblem(problem)}`);
  });
}
