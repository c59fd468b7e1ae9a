import {
  keysOf,
  problemMask,
  problemShape,
  type Problem,
  type ProblemShape,
} from '../../../src/problem/index.js';
import type { GradientQuantityName } from '../../../src/audit/index.js';
import { NotApplicable, type LawTools } from '../law.js';
import { requirePromised, takesMasks } from '../promised-problem.js';
import { replaceElements, specialBits } from '../replace-elements.js';
import { arrangeProblem, arrangeTensors, spreadChoice } from '../transform-problem.js';
import { mapGradients } from './arrange-gradients.js';
import { arrangedDifference, erring, gradientDifference } from './compare-gradients.js';
import { gradientLaw, type GradientCase } from './gradient-law.js';

/** Whether gradients of some quantities are 0 within the bounds of a run. */
async function zeroViolation(
  { problem, dout }: GradientCase,
  tools: LawTools,
  names: readonly GradientQuantityName[],
  words: string,
): Promise<string | null> {
  const run = await tools.runGradients(problem, dout);
  const zeros = mapGradients((name) => new Float64Array(run.gradients[name].length));
  return gradientDifference({ values: zeros, errors: null }, erring(run, tools), {
    shape: run.shape,
    rows: (name) => names.includes(name),
    usual: 'exactly',
    changed: words,
  });
}

/** Keys whose value all others are given, by choice. */
const keyChoices = 8;

/** Every key has the value of one of them: dP is one number a row, and D that number. */
export const gradientsOfLevelValues = gradientLaw({
  statement: 'Where all values of a head are one, dQ and dK are 0 within rounding',
  reason:
    'O does not depend on the weights then: dP − D is nothing but the rounding of O. A D that is missing, half added, of another row or of a stale O shows.',
  strengths: ['bound'],
  usual: 'bound',
  choices: keyChoices,
  without: ['sink', 'dropout', 'descale'],
  violation: async ({ problem, dout, choice }, tools) => {
    const { keys } = problemShape(problem);
    if (keys === 0) throw new NotApplicable('the problem has no keys');
    const key = spreadChoice(choice, keyChoices, keys);
    const { v } = arrangeTensors(problem, { keys: Array<number>(keys).fill(key) });
    const lawCase = { problem: { ...problem, v }, dout, choice };
    return zeroViolation(lawCase, tools, ['dq', 'dk'], 'with one value for all keys');
  },
});

/** One key: its weight is 1 whatever its score. */
export const gradientsOfOneKey = gradientLaw({
  statement: 'With one key dQ and dK are 0 within rounding',
  reason:
    'The only weight is 1, whatever the score: dP and D are one number. Tiles that are padded with something, and a D of another row, show.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  without: ['sink', 'dropout', 'packed'],
  constraints: { keys: { min: 1, max: 1 } },
  violation: async (lawCase, tools) => {
    const { keys } = problemShape(lawCase.problem);
    // Problems of production are drawn with more.
    const problem =
      keys === 1 ? lawCase.problem : arrangeProblem(lawCase.problem, { keys: [keys - 1] });
    requirePromised(problem, tools.promises);
    return zeroViolation({ ...lawCase, problem }, tools, ['dq', 'dk'], 'with one key');
  },
});

/** The keys of each kv head that some query of its group sees, over [batch, kv heads, keys]. */
function seenKeys(problem: Problem, shape: ProblemShape): Uint8Array {
  const { batch, heads, kvHeads, groupSize, queries, keys } = shape;
  const seen = new Uint8Array(batch * kvHeads * keys);
  const mask = problemMask(problem, shape);
  for (let head = 0; head < batch * heads; head++) {
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let query = 0; query < queries; query++)
      for (const key of keysOf(mask.ranges(head, query))) seen[kvHead * keys + key] = 1;
  }
  return seen;
}

/** Rows of dK and dV of keys that no query sees, and of dQ of queries without keys. */
export const gradientsOfUnseen = gradientLaw({
  statement:
    'Keys that no query sees have a dK and a dV of zeros, queries without keys a dQ of zeros',
  reason:
    'Nothing is added to them. Masks that differ between forward and backward, P of rows without keys made of an LSE of −∞, and outputs that nobody zeroes show.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  notFor: (promises) => (takesMasks(promises) ? null : 'masks are not promised'),
  violation: async ({ problem, dout }, { runGradients }) => {
    const shape = problemShape(problem);
    const mask = problemMask(problem, shape);
    const seen = seenKeys(problem, shape);
    const isUnseen = (name: GradientQuantityName, row: number) =>
      name === 'dq'
        ? mask.ranges(Math.floor(row / shape.queries), row % shape.queries).length === 0
        : seen[row] === 0;
    const run = await runGradients(problem, dout);
    const zeros = mapGradients((name) => new Float64Array(run.gradients[name].length));
    return gradientDifference(
      { values: zeros, errors: null },
      { values: run.gradients, errors: null },
      { shape, rows: isUnseen, usual: 'exactly', changed: 'though nothing adds to it' },
    );
  },
});

/**
 * NaN in K and V at keys that no query of any head sees. Kernels that multiply whole tiles have 0 · NaN there, in dP as
 * in the sums of dQ, so that this law is not promised by default.
 */
export const gradientsHiddenNan = gradientLaw({
  statement: 'A NaN in K and V at keys that no query sees changes no gradient',
  reason:
    'What lies beyond a sequence may hold anything. Kernels that multiply whole tiles have 0 · NaN there, and do not promise it.',
  strengths: ['bits', 'bound'],
  usual: 'none',
  choices: 2,
  without: ['descale'],
  notFor: (promises) => (takesMasks(promises) ? null : 'masks are not promised'),
  violation: async ({ problem, dout, choice }, tools) => {
    const shape = problemShape(problem);
    const seen = seenKeys(problem, shape);
    const isHidden = (key: number) => {
      for (let row = key; row < seen.length; row += shape.keys) if (seen[row] === 1) return false;
      return true;
    };
    if (!Array.from({ length: shape.keys }, (_, key) => key).some(isHidden))
      throw new NotApplicable('every key is seen by some query');
    const name = choice === 0 ? 'k' : 'v';
    const bits = specialBits(problem[name].format, NaN);
    const planted = replaceElements(problem[name], ({ row }) => (isHidden(row) ? bits : null));
    const usual = await tools.runGradients(problem, dout);
    const changed = await tools.runGradients({ ...problem, [name]: planted }, dout);
    const words = `with NaN in ${name.toUpperCase()} at keys that no query sees`;
    const values = { values: changed.gradients, errors: null };
    const before =
      tools.strength === 'bits' ? { values: usual.gradients, errors: null } : erring(usual, tools);
    // What stands at hidden keys changes no bound; the other run has the same once more.
    const twice = before.errors && {
      ...before,
      errors: mapGradients((of) => before.errors![of].map((error) => 2 * error)),
    };
    return gradientDifference(twice ?? before, values, {
      shape,
      usual: 'at first',
      changed: words,
    });
  },
});

/** Rows of dO that are tried. */
const rowChoices = 16;

/** NaN in one row of dO: rows of dQ of other queries, and dK and dV of other heads, must not change. */
export const gradientsNanRow = gradientLaw({
  statement:
    'A NaN in one row of dO reaches the dQ of its query and the dK and dV of its kv head, and nothing else',
  reason:
    'No other row is made of it. Row sums that are shared, tiles of other heads and reductions over padded rows carry it on.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: rowChoices,
  violation: async ({ problem, dout, choice }, tools) => {
    const shape = problemShape(problem);
    const { heads, kvHeads, groupSize, queries, keys, batch } = shape;
    const row = spreadChoice(choice, rowChoices, batch * heads * queries);
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const bits = specialBits(dout.format, NaN);
    const planted = replaceElements(dout, (at) =>
      (at.batch * heads + at.head) * queries + at.row === row && at.column === 0 ? bits : null,
    );
    const usual = await tools.runGradients(problem, dout);
    const changed = await tools.runGradients(problem, planted);
    const words = `with NaN in row ${row % queries} of dO of head ${head % heads}`;
    const isApart = (name: GradientQuantityName, at: number) =>
      name === 'dq' ? at !== row : Math.floor(at / keys) !== kvHead;
    return arrangedDifference({ usual, changed, words, rows: isApart }, tools);
  },
});
