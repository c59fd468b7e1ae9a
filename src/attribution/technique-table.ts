import { techniques as boundedTechniques, type AttributedKernel } from '../../kernels/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import type { Bounds, RowsBound } from '../audit/index.js';
import { planSingleRuns, type RowErrors, tileErrors, type TileErrors } from './tile-errors.js';
import { RunningSpread, type Spread } from './error-measure.js';

/** A bound over all elements (or rows) where it is finite. */
export type BoundMeasure = Pick<Spread, 'max' | 'rms'>;

/** An error over the elements where it and its bound are finite. */
export interface MeasuredError extends Spread {
  /** The largest share of its bound that an element uses. */
  readonly used: number;
}

/** One line of the table: the bound of a technique, and its effect if that was measured. */
export interface TechniqueLine {
  readonly technique: string;
  /** Bound on the output, in its unit. */
  readonly bound: BoundMeasure;
  readonly measured: MeasuredError | null;
  /** Bound on the LSE, in natural logarithms. */
  readonly lseBound: BoundMeasure;
  readonly lseMeasured: MeasuredError | null;
}

/** The bound of every technique of a kernel on the output of a problem, and its effect. */
export interface TechniqueTable {
  /** The kernel, in words, whose arithmetic the bounds are for. */
  readonly arithmetic: string;
  /** The emulated kernel whose techniques were measured one at a time; null for none. */
  readonly kernel: string | null;
  /** Lines of the techniques, in the order in which they act. */
  readonly techniques: readonly TechniqueLine[];
  readonly total: TechniqueLine;
  /** The root mean square error to expect. */
  readonly expected: number;
  /** Largest magnitude of the exact output, where finite. */
  readonly largestOutput: number;
  /** Number of elements; of those without a bound; of those measured. */
  readonly elements: number;
  readonly unbounded: number;
  readonly measuredElements: number;
}

/** The bound for a technique of a kernel, which may have another name among the bounds. */
function boundOf(
  technique: string,
  kernel: AttributedKernel | undefined,
): keyof Bounds['techniques'] | 'all' {
  const named = kernel?.definitions[technique].bound ?? technique;
  return named as keyof Bounds['techniques'] | 'all';
}

class BoundMeter {
  readonly #bounds = new RunningSpread();
  add(bound: number): void {
    if (Number.isFinite(bound)) this.#bounds.add(bound);
  }
  get count(): number {
    return this.#bounds.count;
  }
  measure(): BoundMeasure {
    const { max, rms } = this.#bounds.measure();
    return { max, rms };
  }
}

class ErrorUseMeter {
  readonly #errors = new RunningSpread();
  #used = 0;
  add(error: number, bound: number): void {
    if (!Number.isFinite(error) || !Number.isFinite(bound)) return;
    this.#errors.add(error);
    const size = Math.abs(error);
    if (size > 0) this.#used = Math.max(this.#used, size / bound);
  }
  get count(): number {
    return this.#errors.count;
  }
  measure(): MeasuredError {
    return { ...this.#errors.measure(), used: this.#used };
  }
}

/** A meter of one technique, or of all together, for the output and the LSE. */
class LineMeter {
  readonly #bounds = { out: new BoundMeter(), lse: new BoundMeter() };
  readonly #errors = { out: new ErrorUseMeter(), lse: new ErrorUseMeter() };
  readonly #select: (bounds: Bounds) => Float64Array;
  /** The error of the errors themselves, in units of Σ p|v|: smaller ones count as none. */
  readonly #threshold: (element: number) => number;

  constructor(select: (bounds: Bounds) => Float64Array, threshold: (element: number) => number) {
    this.#select = select;
    this.#threshold = threshold;
  }

  addBounds(bound: RowsBound, elements: number): void {
    const [out, lse] = [this.#select(bound.quantities.out), this.#select(bound.quantities.lse)];
    for (let i = 0; i < elements; i++) this.#bounds.out.add(out[i]);
    for (let i = 0; i < bound.rows; i++) this.#bounds.lse.add(lse[i]);
  }

  /** Adds the errors of `count` rows, which begin at `from` in the bound and at `at` in the errors. */
  addErrors(bound: RowsBound, from: number, errors: RowErrors, at: number, count: number): void {
    const [out, lse] = [this.#select(bound.quantities.out), this.#select(bound.quantities.lse)];
    const vDim = errors.out.length / errors.lse.length;
    for (let i = 0; i < count * vDim; i++) {
      const error = errors.out[at * vDim + i];
      const threshold = this.#threshold((bound.firstRow + from) * vDim + i);
      this.#errors.out.add(Math.abs(error) <= threshold ? 0 : error, out[from * vDim + i]);
    }
    for (let i = 0; i < count; i++) {
      const error = errors.lse[at + i];
      this.#errors.lse.add(Math.abs(error) <= lseThreshold ? 0 : error, lse[from + i]);
    }
  }

  get bounded(): number {
    return this.#bounds.out.count;
  }
  get measuredElements(): number {
    return this.#errors.out.count;
  }

  line(technique: string, isMeasured: boolean): TechniqueLine {
    return {
      technique,
      bound: this.#bounds.out.measure(),
      measured: isMeasured ? this.#errors.out.measure() : null,
      lseBound: this.#bounds.lse.measure(),
      lseMeasured: isMeasured ? this.#errors.lse.measure() : null,
    };
  }
}

/** The error of an attribution itself, relative to Σ p|v|, and that of an LSE. */
const attributionError = 2 ** -40;
const lseThreshold = 2 ** -36;

/** Options of a table of techniques, for measurements beside the bounds. */
export interface TechniqueTableOptions {
  /** The kernel to measure, its techniques one at a time; without it bounds only. */
  readonly kernel?: AttributedKernel;
  /**
   * The most multiply-adds that measuring may take, over all runs; pieces are left out evenly until it
   * fits. Default: no limit.
   */
  readonly effort?: number;
}

/** The pieces to measure: all, or evenly spread ones that fit the effort. */
function chosenPieces(kernel: AttributedKernel, runs: number, effort: number): Set<number> {
  const { batch, heads, queries, keys, qkDim, vDim } = kernel.shape;
  const whole = runs * batch * heads * queries * keys * (qkDim + vDim);
  const count = Math.max(1, Math.min(kernel.pieces, Math.floor((kernel.pieces * effort) / whole)));
  return new Set(Array.from({ length: count }, (_, i) => Math.floor((i * kernel.pieces) / count)));
}

/** Makes a table of techniques from the bounds of a visit. */
export interface TechniqueTableMeter {
  /** Takes the bounds of the next rows, as `forEachRowsBound` visits them. */
  readonly visit: (bound: RowsBound) => void;
  readonly table: () => TechniqueTable;
}

/**
 * The bounds of every technique of a kernel on a problem beside its effect: its error with this
 * technique emulated and all others exact. Streams over rows; memory is that of a tile for each run.
 *
 * @param arithmetic the name of the arithmetic whose bounds are visited
 */
export function createTechniqueTable(
  reference: AttentionReference,
  arithmetic: string,
  { kernel, effort = Infinity }: TechniqueTableOptions = {},
): TechniqueTableMeter {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const { vDim } = reference.shape;
  const names = kernel?.techniques ?? boundedTechniques;
  const threshold = (element: number) =>
    exactOut.magnitude[element] * attributionError + exactOut.radius[element];
  const meters = names.map((name) => {
    const bounded = boundOf(name, kernel);
    return new LineMeter(
      (bounds) => (bounded === 'all' ? bounds.total : bounds.techniques[bounded]),
      threshold,
    );
  });
  const total = new LineMeter(
    (bounds) => bounds.total,
    () => 0,
  );
  const plan = kernel === undefined ? null : planSingleRuns(names);
  const run = plan === null ? null : kernel!.prepareRuns(plan.choices);
  const chosen =
    plan === null ? new Set<number>() : chosenPieces(kernel!, plan.choices.length, effort);
  const rows = exactLse.values.length;
  let [piece, tile]: [number, TileErrors | null] = [0, null];
  let deviation = 0;
  let largestOutput = 0;

  /** Adds the errors of the bound's rows, but for those of pieces that are left out. */
  function addErrors(kernel: AttributedKernel, bound: RowsBound): void {
    if (plan === null || run === null) return;
    const end = bound.firstRow + bound.rows;
    for (; piece < kernel.pieces && kernel.rowsOf(piece).first < end; piece++) {
      const { first, rows } = kernel.rowsOf(piece);
      if (chosen.has(piece)) {
        if (tile === null || tile.firstRow !== first)
          tile = tileErrors(run(piece), plan, reference);
        const begin = Math.max(first, bound.firstRow);
        const count = Math.min(first + rows, end) - begin;
        const place = [bound, begin - bound.firstRow] as const;
        const { alone, all } = tile;
        names.forEach((name, i) =>
          meters[i].addErrors(...place, alone[name], begin - first, count),
        );
        total.addErrors(...place, all, begin - first, count);
      }
      // The next bound's rows may be of this piece too.
      if (first + rows > end) return;
    }
  }

  function visit(bound: RowsBound): void {
    const elements = bound.rows * vDim;
    for (const meter of [...meters, total]) meter.addBounds(bound, elements);
    for (let i = 0; i < elements; i++) {
      const own = bound.quantities.out.deviation[i];
      if (Number.isFinite(own)) deviation += own * own;
      const exact = Math.abs(exactOut.values[bound.firstRow * vDim + i]);
      if (Number.isFinite(exact)) largestOutput = Math.max(largestOutput, exact);
    }
    if (kernel !== undefined) addErrors(kernel, bound);
  }

  const isMeasured = kernel !== undefined;
  const table = (): TechniqueTable => ({
    arithmetic,
    kernel: kernel?.model ?? null,
    techniques: meters.map((meter, i) => meter.line(names[i], isMeasured)),
    total: total.line('all', isMeasured),
    expected: Math.sqrt(deviation / Math.max(total.bounded, 1)),
    largestOutput,
    elements: rows * vDim,
    unbounded: rows * vDim - total.bounded,
    measuredElements: total.measuredElements,
  });
  return { visit, table };
}
