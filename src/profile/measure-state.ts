import { formats } from '../formats/index.js';
import type { AccumulateEngine, Block, ScaleBlocks } from './accumulate-engine.js';
import type { Measure } from './error-plan.js';
import { formatRecord, type FormatRecord } from './record.js';
import type { Reference } from './references.js';

/** Arrays and records in the engine's memory that one measure takes, and each function in it. */
export const blocksPerMeasure = 6;
export const recordsPerCandidate = 3;

/** What fp64 references that are not exact are taken to err by when rounded: far more than they do. */
const margin = 2 ** -50;

/** The memory of one measure for one segment. */
interface MeasureState extends ScaleBlocks {
  readonly measure: Measure;
  readonly record: FormatRecord;
  /** The format's address. */
  readonly format: number;
  /** Rounded results of the baseline and of the function at hand. */
  readonly baseline: Block<Float64Array>;
  readonly results: Block<Float64Array>;
  /** At how many inputs of the segment errors are measured. */
  scaledCount: number;
  ulpCount: number;
}

/** The state of a measure. */
export function createMeasureState(engine: AccumulateEngine, measure: Measure): MeasureState {
  const record = formatRecord(measure.rounding);
  return {
    measure,
    record,
    format: engine.format(record),
    scale: engine.numbers(),
    ulps: engine.numbers(),
    rounded: engine.numbers(),
    baseline: engine.numbers(),
    results: engine.numbers(),
    scaledCount: 0,
    ulpCount: 0,
  };
}

/**
 * Sets up the state for the first `count` references: the scales of their errors and their correctly
 * rounded values, by the exact function where fp64 cannot tell. Without an exact function the
 * references are exact themselves.
 * @param x the inputs of the references
 */
export function prepareMeasure(
  engine: AccumulateEngine,
  state: MeasureState,
  values: Block<Float64Array>,
  count: number,
  reference: Reference | null,
  x: Float32Array,
): void {
  const { measure, record, format } = state;
  const isExact = reference === null || reference.relativeError === 0;
  const isAbsolute = measure.error === 'absolute';
  const width = isExact ? 0 : margin;
  const prepared = engine.prepare(values, count, format, isAbsolute, width, state);
  state.scaledCount = prepared.scaledCount;
  state.ulpCount = prepared.ulpCount;
  if (reference === null) return;
  for (const i of prepared.undecided) {
    const rounded = reference.rounded(x[i], formats[measure.rounding.format]);
    const isBeyond = !(Math.abs(rounded) <= record.largest);
    state.rounded.view[i] = isBeyond ? Math.sign(values.view[i]) * record.beyond : rounded;
  }
}
