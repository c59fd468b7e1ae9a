import { levels, type AttentionReference } from '../../../oracles/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import { createDeclaredRows, usualOrder, type SumOrder } from './declared-row.js';
import { sizesOf, type Errors, type ErrorSizes } from './error-sizes.js';
import { fewestRows } from './row-fit.js';

/** A premise, and an order of sums by which a plain kernel of it is run. */
export interface Candidate {
  readonly declaration: PremiseDeclaration;
  readonly order: SumOrder;
}

/** Outputs whose rows are sampled. */
export interface SampledOutputs {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
}

/** Rows that candidates are emulated on, and products of them at most. */
const sampledRows = 64;
const mostProducts = 2 ** 21;
/** Rows spread evenly over all heads, without those that no statistic admits. */
export function sampledRowsOf({
  shape,
  level,
  quantities: {
    lse: { values: lse },
  },
}: AttentionReference): number[] {
  const { keys, qkDim, vDim } = shape;
  const affordable = Math.floor(mostProducts / Math.max(keys * (qkDim + vDim), 1));
  const count = Math.max(fewestRows, Math.min(sampledRows, affordable));
  const rows = lse.length;
  const step = Math.max(1, Math.floor(rows / count));
  const chosen: number[] = [];
  for (let row = Math.floor(step / 2); row < rows && chosen.length < count; row += step)
    if (levels[level[row]] !== 'special' && Number.isFinite(lse[row])) chosen.push(row);
  return chosen;
}

/** The errors of sampled rows, and those of plain kernels of some premises on them. */
export class SampledErrors {
  readonly rows: readonly number[];
  readonly found: Errors;
  readonly size: ErrorSizes;
  readonly usual: Errors;
  readonly lseRounding: number;
  readonly #request: SampledOutputs;

  constructor(request: SampledOutputs) {
    const { outputs, reference } = request;
    this.#request = request;
    this.rows = sampledRowsOf(reference);
    this.found = this.foundOn(this.rows);
    this.size = sizesOf(this.found);
    this.usual = this.emulate({ declaration: {}, order: usualOrder }, this.rows);
    // Roundings of the LSE itself, and of its sums, add up to some ulps of fp32.
    const { values } = reference.quantities.lse;
    const largest = this.rows.reduce((most, row) => Math.max(most, Math.abs(values[row])), 0);
    this.lseRounding = outputs.lse === null ? 0 : 4 * 2 ** -24 * (1 + largest);
  }

  /** The heads of the rows. */
  heads(): number[] {
    return this.rows.map((row) => Math.floor(row / this.#request.reference.shape.queries));
  }

  /** The errors found on some rows. */
  foundOn(rows: readonly number[]): Errors {
    const { outputs, reference } = this.#request;
    const { vDim } = reference.shape;
    const { values } = outputs.out;
    return this.#errorsOf(
      rows,
      (row) => values.subarray(row * vDim, (row + 1) * vDim),
      (row) => outputs.lse!.values[row],
    );
  }

  /** The errors of a plain kernel on some rows. */
  emulate({ declaration, order }: Candidate, rows: readonly number[]): Errors {
    const { problem, reference, outputs } = this.#request;
    const { format } = outputs.out;
    const rowOf = createDeclaredRows(problem, reference.shape, format, declaration, order);
    const emulated = new Map(rows.map((row) => [row, rowOf(row)]));
    return this.#errorsOf(
      rows,
      (row) => emulated.get(row)!.out,
      (row) => emulated.get(row)!.lse,
    );
  }

  #errorsOf(
    rows: readonly number[],
    outOf: (row: number) => Float64Array,
    lseOf: (row: number) => number,
  ): Errors {
    const { reference, outputs } = this.#request;
    const { out, lse } = reference.quantities;
    const { vDim } = reference.shape;
    const exact = rows.flatMap((row) => [...out.values.subarray(row * vDim, (row + 1) * vDim)]);
    const ofRows = rows.flatMap((row) => [...outOf(row)]);
    return {
      out: Float64Array.from(ofRows, (x, i) => x - exact[i]),
      exact: Float64Array.from(exact),
      lse: Float64Array.from(rows, (row) =>
        outputs.lse === null ? 0 : lseOf(row) - lse.values[row],
      ),
    };
  }
}
