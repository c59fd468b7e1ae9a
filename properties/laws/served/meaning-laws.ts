import { describePlace } from '../../../src/audit/index.js';
import { firstDifference } from '../compare-runs.js';
import type { MeaningClaim, ProblemPromises } from '../kernel-under-test.js';
import { NotApplicable, type Law, type LawTools } from '../law.js';
import { arrangeSequence, sequenceFormChoices } from './batch-laws.js';
import { arrangeResults } from '../transform-problem.js';
import type { Problem } from '../../../src/problem/index.js';

const notFollowed = ({ follow }: ProblemPromises): string | null =>
  follow === null ? 'only values of compiled kernels are followed' : null;

/** What refutes a claim, in a sentence without its full stop; null where it is proven. @throws NotApplicable where nothing is said */
function refutation({ refuted, unknown }: MeaningClaim): string | null {
  if (refuted.length > 0) return refuted.join('; ');
  if (unknown.length > 0) throw new NotApplicable(unknown.join('; '));
  return null;
}

/** Real values are attention: without any rounding the kernel would give softmax attention, to 25 digits. */
export const means: Law = {
  statement: 'Without any rounding, the values that the kernel computes are attention',
  reason:
    'Tiles, running maxima, rescalings and splits cancel in real numbers. What is left is a fault, however small: a key of little weight left out, a constant that is one ulp off.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  notFor: notFollowed,
  violation: async ({ problem }, { follow }) => refutation((await follow(problem)).meaning.means),
};

/** Nothing reaches a row that it must not see, with weight. */
export const unreached: Law = {
  statement: 'A row depends on its query and on the keys that it sees, and on nothing else',
  reason:
    'The operations that made a row are followed back to the inputs. A masked key that only lost against a maximum, or whose weight underflowed, would show in other inputs; a neighbour of a sequence likewise.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  notFor: notFollowed,
  violation: async ({ problem }, { follow }) =>
    refutation((await follow(problem)).meaning.unreached),
};

/** The expressions of a run in the place of its numbers. */
async function expressionsOf(follow: LawTools['follow'], problem: Problem) {
  const { run, meaning } = await follow(problem);
  return { shape: run.shape, ...meaning.expressions() };
}

/** A sequence alone has the expressions that it has among others. */
export const sameExpression: Law = {
  statement: 'A sequence alone is computed by the operations that compute it among others',
  reason:
    'Expressions are compared, not bits: equal ones have equal bits for all inputs that decide alike. Splits and tiles that are chosen by the whole batch show even where the bits agree.',
  strengths: ['bits'],
  usual: 'none',
  choices: sequenceFormChoices,
  notFor: notFollowed,
  violation: async (lawCase, { promises, follow }) => {
    const { problem, transformed, rows = {}, words } = arrangeSequence(lawCase, promises);
    const usual = arrangeResults(await expressionsOf(follow, problem), rows);
    const alone = await expressionsOf(follow, transformed);
    // What is lost has no number.
    const isKnown = (x: Float64Array | null, i: number) => x !== null && !Number.isNaN(x[i]);
    const { vDim } = alone.shape;
    const found = firstDifference(usual, alone, {
      elements: (row, column) => {
        const element = row * vDim + column;
        return isKnown(usual.out, element) && isKnown(alone.out, element);
      },
      rows: (row) => isKnown(usual.lse, row) && isKnown(alone.lse, row),
    });
    if (found === null) return null;
    const { what, at, differing, compared } = found;
    return `${words}, ${what} at ${describePlace(at)} has another expression (${differing} of ${compared} compared)`;
  },
};
