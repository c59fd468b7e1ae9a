import { formats } from '../formats/index.js';
import {
  type AccumulateEngine,
  type Block,
  createAccumulateEngine,
  type ScaleBlocks,
  segmentLength,
} from './accumulate-engine.js';
import type { CandidateSlice, ErrorPlan, Measure, Slice, SliceErrors } from './error-plan.js';
import { formatRecord, type FormatRecord } from './record.js';
import { type CandidateName, type Reference, references } from './functions.js';
import type { ArrayFunction } from '../simd/index.js';
import { isConstant, mergeClasses, noClasses, type ResultClasses } from './result-classes.js';
import { columnOf, createEnvelopeSlice, type EnvelopeSlice } from './envelope.js';

/** Number of arrays and records in the engine's memory for one measure, and for each function in it. */
const blocksPerMeasure = 6;
const recordsPerCandidate = 3;

/** Assumed relative error of rounded fp64 references that are not exact: far more than their true error. */
const margin = 2 ** -50;

/** The memory of one measure for one segment. */
interface MeasureState extends ScaleBlocks {
  readonly measure: Measure;
  readonly record: FormatRecord;
  /** The format's address. */
  readonly format: number;
  /** Rounded results of the baseline and of the current function. */
  readonly baseline: Block<Float64Array>;
  readonly results: Block<Float64Array>;
  /** Number of inputs of the segment at which errors are measured. */
  scaledCount: number;
  ulpCount: number;
}

function createMeasureState(engine: AccumulateEngine, measure: Measure): MeasureState {
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

/** References of a segment's first inputs. */
interface ReferenceValues {
  readonly values: Block<Float64Array>;
  readonly count: number;
  /** The inputs of the references. */
  readonly x: Float32Array;
}

/**
 * Sets up the state for the first `count` references: the scales of their errors and their correctly
 * rounded values, by the exact function where fp64 cannot tell. Without an exact function the
 * references are exact themselves.
 */
function prepareMeasure(
  engine: AccumulateEngine,
  state: MeasureState,
  { values, count, x }: ReferenceValues,
  reference: Reference | null,
): void {
  const { measure, record, format } = state;
  const isExact = reference === null || reference.relativeError === 0;
  const absolute = measure.error === 'absolute';
  const rule = { format, absolute, margin: isExact ? 0 : margin };
  const prepared = engine.prepare(values, count, rule, state);
  state.scaledCount = prepared.scaledCount;
  state.ulpCount = prepared.ulpCount;
  if (reference === null) return;
  for (const i of prepared.undecided) {
    const rounded = reference.rounded(x[i], formats[measure.rounding.format]);
    const isBeyond = !(Math.abs(rounded) <= record.largest);
    state.rounded.view[i] = isBeyond ? Math.sign(values.view[i]) * record.beyond : rounded;
  }
}

/** Consecutive inputs that are processed together. */
interface Segment {
  readonly first: number;
  readonly count: number;
  /** Whether the input after the last is in the plan's range, and its result available. */
  readonly hasNext: boolean;
}

/**
 * A function that measures the errors of a plan's functions at every input of a slice. It has working
 * memory of its own; make one per thread.
 * @param functions the functions by name; all that the plan names
 */
export function createErrorSlices(
  plan: ErrorPlan,
  functions: ReadonlyMap<CandidateName, ArrayFunction>,
): (slice: Slice) => SliceErrors {
  const { measures, candidates } = plan;
  const perMeasure = blocksPerMeasure + recordsPerCandidate * candidates.length;
  const engine = createAccumulateEngine(4 + candidates.length + measures.length * perMeasure);
  const { loops } = engine;
  const inputs = engine.words();
  const exact = engine.numbers();
  const x = new Float32Array(inputs.view.buffer, inputs.address, inputs.view.length);
  const reference = plan.reference === 'baseline' ? null : references[plan.reference];
  const fillReference = reference?.create();
  const states = measures.map((measure) => createMeasureState(engine, measure));
  const functionStates = candidates.map((name, c) => ({
    evaluate: functions.get(name)!,
    results: engine.words(),
    records: states.map((state) => {
      const own = c === 0 ? state.baseline : state.results;
      const errors = engine.record();
      const arrays = engine.arrays().write({
        z: own.address,
        reference: (reference === null ? state.baseline : exact).address,
        rounded: state.rounded.address,
        baseline: state.baseline.address,
        scale: state.scale.address,
        ulps: state.ulps.address,
        smallestNormal: state.record.smallestNormal,
        record: errors.address,
      });
      return { own, errors, arrays, fromBaseline: engine.record(), toBaseline: engine.record() };
    }),
  }));
  const direction = plan.increasing ? 1 : -1;

  /** Evaluates all functions on a segment; the classes of their results. */
  const evaluate = ({ first, count, hasNext }: Segment): ResultClasses[] => {
    const wanted = hasNext ? count + 1 : count;
    loops.fillInputs(inputs.address, first, wanted);
    const patterns = inputs.view.subarray(0, wanted);
    return functionStates.map((state) => {
      state.evaluate(patterns, state.results.view);
      return engine.classify(state.results, count);
    });
  };

  /** Adds the errors of a segment, whose results are available, to the records. */
  const measure = (
    { first, count, hasNext }: Segment,
    classes: readonly ResultClasses[],
    widen: (candidate: number, extent: readonly [number, number]) => void,
  ): { scaled: number; ulp: number }[] => {
    fillReference?.(x, exact.view, count);
    const isUniform =
      reference !== null &&
      classes.every(isConstant) &&
      loops.isConstant(exact.address, count) !== 0;
    // One input stands for all: with its successor moved up, the segment can be treated as that short.
    const repeat = isUniform ? count : 1;
    const distinct = isUniform ? 1 : count;
    const pairs = hasNext ? distinct : distinct - 1;
    const pairOrdinal = isUniform ? first + count - 1 : first;
    if (isUniform) for (const { results } of functionStates) results.view[1] = results.view[count];

    for (const [m, state] of states.entries()) {
      if (reference !== null)
        prepareMeasure(engine, state, { values: exact, count: distinct, x }, reference);
      for (const [c, { results, records }] of functionStates.entries()) {
        const { own, errors, arrays, fromBaseline, toBaseline } = records[m];
        loops.roundResults(results.address, own.address, pairs + 1, state.format);
        if (c === 0 && reference === null)
          prepareMeasure(engine, state, { values: own, count: distinct, x }, reference);
        const { address: base } = state.baseline;
        loops.accumulate(arrays, distinct, repeat, first);
        if (m === 0) widen(c, engine.extent(errors.address));
        const addBreaks = (left: number, right: number, record: number): void =>
          loops.countBreaks(left, right, state.ulps.address, pairs, direction, pairOrdinal, record);
        addBreaks(own.address, own.address, errors.address);
        if (reference !== null || c === 0) continue;
        addBreaks(base, own.address, fromBaseline.address);
        addBreaks(own.address, base, toBaseline.address);
      }
    }
    return states.map((state) => ({
      scaled: state.scaledCount * repeat,
      ulp: state.ulpCount * repeat,
    }));
  };

  return (slice) => {
    const classes = functionStates.map(() => noClasses);
    const measured = states.map(() => ({ scaled: 0, ulp: 0 }));
    const envelopes = functionStates.map(() =>
      plan.panels.map((panel) => createEnvelopeSlice(panel, slice.first, slice.last)),
    );
    for (let first = slice.first; first <= slice.last;) {
      const columns = plan.panels.map((panel) => columnOf(panel, first));
      const ends = plan.panels.map((panel, p) => panel[columns[p] + 1] ?? Infinity);
      const end = Math.min(first + segmentLength, slice.last + 1, ...ends);
      const segment = { first, count: end - first, hasNext: slice.isMeasured && end <= plan.last };
      const found = evaluate(segment);
      for (const c of classes.keys()) classes[c] = mergeClasses(classes[c], found[c]);
      if (slice.isMeasured) {
        const widen = (c: number, extent: readonly [number, number]): void =>
          envelopes[c].forEach((envelope, p) => widenColumn(envelope, columns[p], extent));
        measure(segment, found, widen).forEach(({ scaled, ulp }, m) => {
          measured[m].scaled += scaled;
          measured[m].ulp += ulp;
        });
      }
      first = end;
    }
    return {
      kind: 'errors',
      slice,
      measured: slice.isMeasured ? measured : [],
      candidates: functionStates.map(({ records }, c): CandidateSlice => {
        const taken = records.map(({ errors, fromBaseline, toBaseline }) => ({
          errors: errors.take(),
          crossing: {
            fromBaseline: fromBaseline.take().breaks,
            toBaseline: toBaseline.take().breaks,
          },
        }));
        return {
          classes: classes[c],
          errors: slice.isMeasured ? taken.map(({ errors }) => errors) : [],
          crossings: slice.isMeasured ? taken.map(({ crossing }) => crossing) : [],
          envelopes: slice.isMeasured ? envelopes[c] : [],
        };
      }),
    };
  };
}

/** Widens a column of an envelope slice, if it has that column, by the extent of some errors. */
function widenColumn(
  envelope: EnvelopeSlice | null,
  column: number,
  [least, most]: readonly [number, number],
): void {
  const at = column - (envelope?.firstColumn ?? 0);
  if (envelope === null || at < 0 || at >= envelope.least.length) return;
  envelope.least[at] = Math.min(envelope.least[at], least);
  envelope.most[at] = Math.max(envelope.most[at], most);
}
