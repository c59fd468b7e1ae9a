import { decodeTensor, encodeFromFloat64, formats, nextUp } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { NotApplicable } from '../law.js';
import { spreadChoice } from '../transform-problem.js';
import { arrangedDifference } from './compare-gradients.js';
import { gradientLaw } from './gradient-law.js';

/** Rows that are tried. */
const rowChoices = 16;

/**
 * The kernel's own O, stored, and the same with one row an ulp higher: D of that row is another. dV reads no D, and neither
 * does any other row of dQ.
 */
export const gradientsStoredOutput = gradientLaw({
  statement:
    'An ulp more in a row of the stored O moves the dQ of that row and dK, and nothing else',
  reason:
    'O is read for D alone, row by row; P is made of scores and the LSE. A D of another row, and a dV that reads it, show.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: rowChoices,
  notFor: ({ readsForward }) =>
    readsForward ? null : 'that its backward pass reads a forward that it is given is not promised',
  violation: async ({ problem, dout, choice }, tools) => {
    const { batch, heads, queries, vDim } = problemShape(problem);
    const { out, lse } = (await tools.run(problem)).outputs;
    if (lse === null) throw new NotApplicable('the kernel gives no LSE, which its backward reads');
    const row = spreadChoice(choice, rowChoices, batch * heads * queries);
    const format = formats[out.format];
    const moved = decodeTensor(out).map((x, i) =>
      Math.floor(i / vDim) === row && Math.abs(x) < format.maxFinite ? nextUp(format, x) : x,
    );
    const nudged = { ...out, data: encodeFromFloat64(format, moved) };
    const usual = await tools.runGradients(problem, dout, { forward: { out, lse } });
    const changed = await tools.runGradients(problem, dout, { forward: { out: nudged, lse } });
    const words = `with row ${row % queries} of the O of head ${Math.floor(row / queries) % heads} an ulp higher`;
    return arrangedDifference(
      { usual, changed, words, rows: (name, at) => name === 'dv' || (name === 'dq' && at !== row) },
      tools,
    );
  },
});
