import { techniques } from '../../../kernels/index.js';
import { attentionOracle, levels, type AttentionReference } from '../../../oracles/index.js';
import type { Bounds, KernelArithmetic } from '../../../src/audit/bounds/index.js';
import { testSpread } from '../../../src/audit/spread-test.js';
import { decodeToFloat64, formats, ulp, type FormatName } from '../../../src/formats/index.js';
import { visibleKeys, type Problem } from '../../../src/problem/index.js';
import type { JudgedKernel } from './judged-kernels.js';
import { keepBounds, type KeptBounds } from './kept-bounds.js';
import { compared } from '../hand-made.js';

/**
 * What exact techniques of an attribution, which are fp64, add of their own, relative to Σ p|v|, or to an
 * LSE and the largest score: this much, and twice what they err by where no technique is emulated, which
 * grows with the scores. Beyond `mostOwnError` it would be an error of the attribution.
 */
const leastOwnError = 1e-13;
const mostOwnError = 1e-8;
/** Exact weights below 2^-1000 are none to the bounds. */
const leastNumber = 2 ** -850;

function ownError(value: number, exact: number, size: number): number {
  const own = Math.abs(value - exact);
  const measured = Number.isFinite(own) ? Math.min(2 * own, mostOwnError * size) : 0;
  return leastOwnError * size + measured + leastNumber;
}

/** At which probability the spread of a correct kernel may alarm. */
export const falseAlarmRate = 1e-9;

/** The oracle, exact beside any error of a kernel. */
export function preciseOracle(problem: Problem): AttentionReference {
  return attentionOracle(problem, {
    accuracy: { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: 2 ** -40 },
  });
}

/** Outputs of all rows, in one run. */
export interface RunResult {
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** Runs a kernel with the given techniques emulated, and all others exact. */
export function runKernel(
  { kernel }: JudgedKernel,
  reference: AttentionReference,
  choices: readonly (readonly string[])[],
): RunResult[] {
  const results = choices.map(() => ({
    out: new Float64Array(reference.quantities.out.values.length),
    lse: new Float64Array(reference.quantities.lse.values.length),
  }));
  const run = kernel.prepareRuns(choices.map((names) => new Set(names)));
  for (let piece = 0; piece < kernel.pieces; piece++) {
    const { firstRow, outputs, lse } = run(piece);
    results.forEach((result, i) => {
      result.out.set(outputs[i], firstRow * reference.shape.vDim);
      result.lse.set(lse[i], firstRow);
    });
  }
  return results;
}

/** What was looked at, and what was wrong with it. */
export interface Findings {
  /** Elements and rows with a finite bound. */
  readonly checked: number;
  readonly violations: readonly string[];
}

class Finder {
  checked = 0;
  readonly violations: string[] = [];

  add(text: () => string): void {
    if (this.violations.length < 8) this.violations.push(text());
  }
}

/** Numbers at least this large round to infinity. */
function overflowThreshold(name: FormatName): number {
  const format = formats[name];
  return format.maxFinite + ulp(format, format.maxFinite) / 2;
}

/**
 * Whether an element may be NaN because 0·∞ or 0·NaN is: a value of its column that the row does not see
 * is no number. A fault of the kernel that bounds of roundings do not excuse, so it gets no bound, but no
 * violation of one either. GPU kernels multiply a whole tile, masked or not.
 */
function masksSpecialValue(problem: Problem, { shape }: AttentionReference) {
  const { queries, keys, vDim, heads, kvHeads, groupSize } = shape;
  const values = decodeToFloat64(problem.v.data, formats[problem.v.format]);
  const specials: { readonly head: number; readonly key: number; readonly column: number }[] = [];
  values.forEach((x, i) => {
    if (Number.isFinite(x)) return;
    const row = Math.floor(i / vDim);
    specials.push({ head: Math.floor(row / keys), key: row % keys, column: i % vDim });
  });
  return (element: number): boolean => {
    if (specials.length === 0) return false;
    const row = Math.floor(element / vDim);
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const { begin, end } = visibleKeys(problem, shape, row % queries);
    return specials.some(
      (one) =>
        one.head === kv && one.column === element % vDim && !(begin <= one.key && one.key < end),
    );
  };
}

interface Compared {
  readonly what: string;
  /** Where NaN is nothing that a bound is about. */
  readonly mayBeNaN?: (i: number) => boolean;
  readonly values: Float64Array;
  readonly exact: Float64Array;
  readonly bound: Float64Array;
  readonly allowance: (i: number) => number;
  /** From here on an output may be infinite. */
  readonly overflow: number;
}

function compare(
  { what, values, exact, bound, allowance, overflow, mayBeNaN }: Compared,
  found: Finder,
): void {
  for (let i = 0; i < values.length; i++) {
    const most = bound[i] + allowance(i);
    if (Number.isNaN(bound[i]) || bound[i] === Infinity) continue;
    found.checked++;
    if (values[i] === exact[i]) continue;
    const error = Math.abs(values[i] - exact[i]);
    if (error <= most) continue;
    if (Math.abs(values[i]) === Infinity && Math.abs(exact[i]) + most >= overflow) continue;
    if (Number.isNaN(values[i]) && mayBeNaN?.(i) === true) continue;
    found.add(
      () =>
        `${what} ${i}: ${values[i]} is ${error} from ${exact[i]}, bound ${bound[i]} (+ ${most - bound[i]})`,
    );
  }
}

/** NaN is said where an input of the row is not finite, and nowhere else. */
function checkSpecialRows(
  bounds: KeptBounds,
  {
    level,
    quantities: {
      lse: { values: lse },
    },
  }: AttentionReference,
  found: Finder,
) {
  const special = levels.indexOf('special');
  bounds.lse.total.forEach((bound, row) => {
    if (level[row] !== special && Number.isNaN(bound))
      found.add(() => `row ${row}: no bound, but it is not special (LSE ${lse[row]})`);
  });
}

/** A bound, a systematic part and a deviation that are no numbers at the same places, none negative. */
function checkParts(name: string, bounds: Bounds, found: Finder): void {
  const parts = [...Object.values(bounds.techniques), bounds.systematic, bounds.deviation];
  bounds.total.forEach((total, i) => {
    if (Number.isNaN(total) || total === Infinity) return;
    for (const part of parts)
      if (!(part[i] >= 0 && part[i] < Infinity))
        found.add(() => `${name} ${i}: part ${part[i]} of a finite bound ${total}`);
  });
}

function checkSpread(
  what: string,
  reference: AttentionReference,
  out: Float64Array,
  bounds: KeptBounds,
  found: Finder,
): void {
  const spread = testSpread(
    compared(reference, 'out', out, 'fp32'),
    { quantities: { out: bounds.out, lse: bounds.lse }, unit: bounds.unit },
    falseAlarmRate,
  );
  if (spread.outside > 0)
    found.add(
      () =>
        `${what}: ${spread.outside} elements beyond their spread, ${JSON.stringify(spread.worst)}`,
    );
  for (const result of spread.results)
    if (result.measured > result.limit)
      found.add(() => `${what}: spread of a ${result.scope}, ${JSON.stringify(result)}`);
}

/** An output and LSE, made by whatever kernel. */
export interface NamedOutput {
  readonly what: string;
  readonly out: Float64Array;
  readonly lse: Float64Array | null;
}

/** Checks outputs and LSEs against the bounds of an arithmetic. */
export function judgeOutputs(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  outputs: readonly NamedOutput[],
): Findings {
  const found = new Finder();
  const bounds = keepBounds(problem, reference, arithmetic);
  for (const output of outputs)
    judge({ what: output.what, problem, reference, arithmetic, bounds }, output, found);
  return found;
}

/** What an LSE and its parts are at most, rounded up. */
function lseSize({
  maximum,
  quantities: {
    lse: { values: lse },
  },
}: AttentionReference) {
  const size = (x: number) => (Number.isFinite(x) ? Math.abs(x) : 0);
  return (row: number) => 1 + size(lse[row]) + size(maximum[row]);
}

/** A kernel itself has nothing beyond its bound. */
const none = () => 0;

interface Judgement {
  readonly what: string;
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly arithmetic: KernelArithmetic;
  readonly bounds: KeptBounds;
}

function judge(
  { what, problem, reference, arithmetic, bounds }: Judgement,
  { out, lse }: { readonly out: Float64Array; readonly lse: Float64Array | null },
  found: Finder,
): void {
  checkSpecialRows(bounds, reference, found);
  compare(
    {
      what: `${what}, element`,
      values: out,
      exact: reference.quantities.out.values,
      bound: bounds.out.total,
      allowance: none,
      overflow: overflowThreshold(arithmetic.outputFormat),
      mayBeNaN: masksSpecialValue(problem, reference),
    },
    found,
  );
  if (lse !== null)
    compare(
      {
        what: `${what}, LSE`,
        values: lse,
        exact: reference.quantities.lse.values,
        bound: bounds.lse.total,
        allowance: none,
        overflow: Infinity,
      },
      found,
    );
  checkSpread(what, reference, out, bounds, found);
}

/**
 * Runs a kernel on a problem, as it is and with each technique alone, and compares what it errs by with
 * its bounds: every element and LSE of every technique and of all together, and the spread. NaN and ∞
 * say nothing; a NaN or infinity of the kernel is an error unless the output's format overflows.
 */
export function boundViolations(problem: Problem, judged: JudgedKernel): Findings {
  const reference = preciseOracle(problem);
  const found = new Finder();
  const { arithmetic, anyKernel, kernel, parts } = judged;
  const bounds = keepBounds(problem, reference, arithmetic);
  checkParts('element', bounds.out, found);
  checkParts('LSE', bounds.lse, found);
  const [whole, exact, ...alone] = runKernel(judged, reference, [
    kernel.techniques,
    [],
    ...techniques.map((name) => parts[name]),
  ]);
  const of = { problem, reference };
  judge({ ...of, what: kernel.model, arithmetic, bounds }, whole, found);
  if (anyKernel !== null) {
    const general = keepBounds(problem, reference, anyKernel);
    judge(
      { ...of, what: `${kernel.model} as any kernel`, arithmetic: anyKernel, bounds: general },
      whole,
      found,
    );
  }
  // A maximum that lags without limit takes exact weights beyond fp64: nothing can be told apart there.
  const toldApart = (bound: Float64Array, values: Float64Array) =>
    bound.map((x, i) => (Number.isFinite(values[i]) ? x : NaN));
  const isMasked = masksSpecialValue(problem, reference);
  techniques.forEach((name, t) => {
    compare(
      {
        what: `${name}, element`,
        values: alone[t].out,
        exact: reference.quantities.out.values,
        bound: toldApart(bounds.out.techniques[name], exact.out),
        allowance: (i) =>
          reference.quantities.out.radius[i] +
          ownError(
            exact.out[i],
            reference.quantities.out.values[i],
            reference.quantities.out.magnitude[i],
          ),
        overflow: name === 'output-round' ? overflowThreshold(kernel.outFormat) : Infinity,
        mayBeNaN: isMasked,
      },
      found,
    );
    const size = lseSize(reference);
    compare(
      {
        what: `${name}, LSE`,
        values: alone[t].lse,
        exact: reference.quantities.lse.values,
        bound: bounds.lse.techniques[name].map((x, row) =>
          exact.lse[row] === Infinity || Number.isNaN(exact.lse[row]) ? NaN : x,
        ),
        allowance: (row) =>
          reference.quantities.lse.radius[row] +
          ownError(exact.lse[row], reference.quantities.lse.values[row], size(row)),
        overflow: Infinity,
      },
      found,
    );
  });
  return found;
}
