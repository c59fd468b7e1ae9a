import { describePlace, elementAt } from '../../../src/audit/index.js';
import { allocateStorage, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { formatApart, formatNumber } from '../../../src/words/index.js';
import { describeDifference, firstDifference, placeOfRow } from '../compare-runs.js';
import type { AttentionOutputs } from '../kernel-under-test.js';
import { NotApplicable, type KernelRun, type Law } from '../law.js';
import { isPromised } from '../promised-problem.js';
import { arrangeProblem, indices, spreadChoice } from '../transform-problem.js';
import { admittedArithmetic, judgedViolation, storingError } from '../within-bound.js';

/** Pairs of numbers of splits that are tried. */
const splitChoices = 16;

/** Every number of splits: right, and of one number the bits of another where that is promised. */
export const splitCounts: Law = {
  statement: 'Any number of splits of the keys is right',
  reason:
    'How many there are is a matter of speed. Splits without keys, a last one that is shorter, boundaries that follow from the batch and a combine that loses one show.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: splitChoices,
  notFor: ({ splits }) => (splits === null ? 'no kernel with splits is promised' : null),
  violation: async ({ problem, choice }, { runSplits, judge, promises, strength }) => {
    const counts = promises.splits?.counts ?? [];
    if (counts.length === 0) throw new NotApplicable('no number of splits is promised');
    const count = counts[choice % counts.length];
    const ran = await runSplits(problem, count);
    if (strength === 'bits') {
      const other = counts[(choice + 1) % counts.length];
      const difference = firstDifference(await runSplits(problem, other), ran);
      if (difference !== null)
        return describeDifference(difference, `in ${other} splits`, `in ${count}`);
    }
    const judged = judgedViolation(judge(ran));
    return judged && `in ${count} splits, ${judged}`;
  },
};

type Result = Required<AttentionOutputs> & { readonly lse: NonNullable<AttentionOutputs['lse']> };

/** The result of a split without keys: O = 0 and LSE = −∞, in the formats of another result. */
function emptyResult({ out, lse }: Result): Result {
  const ofLse = new Float64Array(lse.data.length).fill(-Infinity);
  return {
    out: { ...out, data: allocateStorage(formats[out.format], out.data.length) },
    lse: { ...lse, data: encodeFromFloat64(formats[lse.format], ofLse) },
  };
}

/** A part of the keys: a run on it, or nothing. */
interface Part {
  readonly result: Result;
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** One row of parts put together with weights of an exponential of their LSEs. */
function combined(parts: readonly Part[], row: number, exponential: (x: number) => number) {
  const lses = parts.map(({ lse }) => lse[row]);
  const largest = Math.max(...lses);
  if (largest === -Infinity) return { weights: parts.map(() => 0), lse: -Infinity };
  const weights = lses.map((lse) => exponential(lse - largest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return { weights: weights.map((weight) => weight / sum), lse: largest + Math.log(sum) };
}

function elementOf(parts: readonly Part[], weights: readonly number[], at: number): number {
  return parts.reduce(
    (sum, { out }, i) => (weights[i] === 0 ? sum : sum + weights[i] * out[at]),
    0,
  );
}

/** Whether every row is the one that weights of powers of two of the LSEs give. */
function isOfBaseTwo(merged: KernelRun, parts: readonly Part[], tolerance: number): boolean {
  const { vDim } = merged.shape;
  let told = false;
  for (let row = 0; row < parts[0].lse.length; row++) {
    const { weights } = combined(parts, row, (x) => 2 ** x);
    const ofE = combined(parts, row, Math.exp);
    for (let c = 0; c < vDim; c++) {
      const at = row * vDim + c;
      const value = elementOf(parts, weights, at);
      const size = Math.max(...parts.map(({ out }) => Math.abs(out[at])), 0);
      const limit =
        tolerance * size + storingError(merged.outputs.out.format, value, tolerance * size);
      if (Math.abs(merged.out[at] - value) > limit) return false;
      told ||= Math.abs(elementOf(parts, ofE.weights, at) - value) > 2 * limit;
    }
  }
  return told;
}

/** Relative error of a merge that works in fp32: of weights whose LSEs are so large, and of sums of them. */
function mergeTolerance(parts: readonly Part[], exponential: number): number {
  const largest = parts
    .flatMap(({ lse }) => [...lse])
    .filter(Number.isFinite)
    .reduce((most, lse) => Math.max(most, Math.abs(lse)), 0);
  return 2 * exponential + (largest + 16 * parts.length) * 2 ** -21;
}

/** The first result that is not that of the parts, in a sentence; null for none. */
function wrongMerge(merged: KernelRun, parts: readonly Part[], exponential: number): string | null {
  const { shape, outputs } = merged;
  const { vDim } = shape;
  const tolerance = mergeTolerance(parts, exponential);
  const ofBase = () =>
    isOfBaseTwo(merged, parts, tolerance)
      ? '; weights of 2^LSE give that: LSEs are taken to be in base 2, log2 e times what they are'
      : '';
  for (let row = 0; row < parts[0].lse.length; row++) {
    const { weights, lse } = combined(parts, row, Math.exp);
    const place = describePlace(placeOfRow(shape, row));
    if (merged.lse !== null && outputs.lse) {
      const inner = tolerance * (1 + Math.abs(lse));
      const limit = lse === -Infinity ? 0 : inner + storingError(outputs.lse.format, lse, inner);
      const found = merged.lse[row];
      const isRight = found === lse || Math.abs(found - lse) <= limit;
      if (!isRight)
        return `the LSE at ${place} is ${formatApart(found, lse).join(' but should be ')}${Math.abs(found - lse * Math.LOG2E) <= 2 * limit && lse !== 0 ? ', log2 e times less: it is in base 2' : ''}`;
    }
    for (let c = 0; c < vDim; c++) {
      const at = row * vDim + c;
      const value = elementOf(parts, weights, at);
      const size = Math.max(
        ...parts.map(({ out }, i) => (weights[i] === 0 ? 0 : Math.abs(out[at]))),
        0,
      );
      const inner = tolerance * size;
      const limit = size === 0 ? 0 : inner + storingError(outputs.out.format, value, inner);
      if (Math.abs(merged.out[at] - value) <= limit) continue;
      const where = describePlace(elementAt(shape, at));
      return `O at ${where} is ${formatNumber(merged.out[at])}, but the parts make ${formatNumber(value)} ± ${formatNumber(limit)}${ofBase()}`;
    }
  }
  return null;
}

/** The parts to merge: some of the keys, or a split without keys. */
const mergeForms: readonly {
  readonly words: string;
  readonly parts: readonly ('empty' | 0 | 1)[];
}[] = [
  { words: 'two parts without keys', parts: ['empty', 'empty'] },
  { words: 'a part and one without keys', parts: [0, 'empty'] },
  { words: 'a part without keys and one with', parts: ['empty', 1] },
  { words: 'two parts', parts: [0, 1] },
  { words: 'two parts and one without keys between them', parts: [0, 'empty', 1] },
  { words: 'one part alone', parts: [1] },
];

/** Number of places to cut keys in two. */
const cutChoices = 8;

/**
 * The kernel's merge on results of its own: of some of the keys, and of splits that had none, (0, −∞). O is the mean of
 * the parts by weights of exp(LSE), the LSE the logarithm of the sum of these, computed in fp64; the error of a merge
 * in fp32 is allowed.
 */
export const merging: Law = {
  statement: 'Merging parts weighs them by exp(LSE); (0, −∞) merged with (0, −∞) is (0, −∞)',
  reason:
    'A split without keys has nothing to say: −∞ − −∞ is NaN, and a finite LSE of nothing is believed. LSEs in base 2 weigh parts wrongly.',
  strengths: ['bound'],
  usual: 'bound',
  choices: mergeForms.length * cutChoices,
  without: ['sink', 'alibi', 'block-mask', 'prefix'],
  constraints: { causal: false, window: false },
  notFor: ({ merge }) => (merge === null ? 'no merge is promised' : null),
  violation: async ({ problem, choice }, tools) => {
    const { words, parts: wanted } = mergeForms[choice % mergeForms.length];
    const runs = await partRuns(problem, Math.floor(choice / mergeForms.length), tools);
    const parts = wanted.map((part): Part => {
      if (part !== 'empty') return runs[part];
      const [some] = runs;
      return {
        result: emptyResult(some.result),
        out: new Float64Array(some.out.length),
        lse: new Float64Array(some.lse.length).fill(-Infinity),
      };
    });
    const merged = await tools.merge(
      problem,
      parts.map(({ result }) => result),
    );
    const { exponential } = admittedArithmetic(merged, tools.promises);
    const wrong = wrongMerge(merged, parts, exponential.hardware);
    return wrong && `of ${words}, ${wrong}`;
  },
};

/** The kernel's results of the first keys and of the others. */
async function partRuns(
  problem: Problem,
  choice: number,
  { run, promises }: Parameters<Law['violation']>[1],
): Promise<readonly Part[]> {
  if (problem.causal || problem.window !== null) throw new NotApplicable('the problem has a mask');
  const multiple = promises.multiples.keys ?? 1;
  const units = Math.floor(problemShape(problem).keys / multiple);
  if (units < 2) throw new NotApplicable('the problem has too few keys to split');
  const first = (1 + spreadChoice(choice, cutChoices, units - 1)) * multiple;
  const { keys } = problemShape(problem);
  const parts: Part[] = [];
  for (const some of [indices(first), indices(keys - first, first)]) {
    const part = arrangeProblem(problem, { keys: some });
    if (!isPromised(part, promises)) throw new NotApplicable('parts of the keys are not promised');
    const { outputs, out, lse } = await run(part);
    if (outputs.lse === null || outputs.lse === undefined || lse === null)
      throw new NotApplicable('the kernel gives no LSE, which it needs');
    if (!out.every(Number.isFinite)) throw new NotApplicable('the parts are not finite');
    parts.push({ result: { out: outputs.out, lse: outputs.lse }, out, lse });
  }
  return parts;
}
