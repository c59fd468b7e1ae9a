import { describe, expect, it } from 'vitest';
import { laws, type KernelPromises, type LawId } from '../../../properties/index.js';
import { describePlace } from '../../../src/audit/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { queryPlace, rowOrigins, tryLaw, movedIn, variedProblem } from './try-law.js';

/** A law that compares rows of two runs to the last bit, and a problem that it says something of. */
interface Compared {
  readonly law: LawId;
  readonly problem: Problem;
  readonly choices?: readonly number[];
  readonly promises?: KernelPromises;
}

const plain = variedProblem();
const causal = variedProblem({ causal: true });
const windowed = variedProblem(
  { window: { left: 2, right: 0 } },
  { batch: 1, heads: 2, kvHeads: 1, queries: 4 },
);

const compared: readonly Compared[] = [
  { law: 'determinism', problem: plain, choices: [0, 1] },
  { law: 'query-order', problem: plain, choices: [0, 5] },
  { law: 'heads-independent', problem: plain, choices: [0, 3] },
  { law: 'grouped-heads', problem: plain },
  { law: 'decode-equals-prefill', problem: causal, choices: [0, 1, 12, 31] },
  { law: 'padding', problem: causal, choices: [0, 14] },
  { law: 'padding', problem: windowed, choices: [1, 7], promises: { blockKeys: 4 } },
  { law: 'causal-is-window', problem: causal, choices: [0, 1, 2] },
  { law: 'sequences-alone', problem: plain, choices: [0, 15], promises: { features: ['packed'] } },
  {
    law: 'mask-tensors',
    problem: causal,
    choices: [0, 1],
    promises: { features: ['mask', 'block-mask'] },
  },
  {
    law: 'neutral-features',
    problem: plain,
    choices: [0, 1],
    promises: { features: ['bias', 'mask'] },
  },
];

/** The row of a run, as it is counted in the problem of the first run. */
function firstPlace(first: Problem, last: Problem, row: number) {
  const origin = rowOrigins(last.q, first.q)[row];
  const [batch, head, query] = queryPlace(first, origin);
  return { batch, head, query };
}

/** The first run of a law and the last, with the rows of the last. */
async function runsOf({ law, problem, promises }: Compared, choice: number) {
  const right = await tryLaw(law, { problem, choice }, { strength: 'bits', promises });
  if (right.status !== 'held') return expect.fail(`${law} ${choice}: ${JSON.stringify(right)}`);
  const posed = right.runs.map((run) => run.problem);
  const [first, last] = [posed[0], posed[posed.length - 1]];
  const { batch, heads, queries, vDim } = problemShape(last);
  return { first, last, count: posed.length, rows: batch * heads * queries, vDim };
}

const cases = compared.flatMap((one) => (one.choices ?? [0]).map((choice) => ({ ...one, choice })));

describe.each(cases)('$law of form $choice', ({ choice, ...one }) => {
  const { law, problem, promises } = one;

  it('holds of right results, and names the place where one result of the last run is another', async () => {
    const { first, last, count, rows, vDim } = await runsOf(one, choice);
    for (const row of new Set([0, rows >> 1, rows - 1])) {
      const place = firstPlace(first, last, row);
      for (const [name, at, words] of [
        ['lse', row, `the LSE at ${describePlace(place)} is `],
        ['out', row * vDim + vDim - 1, `O at ${describePlace({ ...place, column: vDim - 1 })} is `],
      ] as const) {
        const kernel = movedIn(count - 1, name, at);
        const wrong = await tryLaw(
          law,
          { problem, choice },
          { strength: 'bits', kernel, promises },
        );
        const isCompared = !(law === 'padding' && choice % 2 === 1) || row >= rows - 2;
        if (!isCompared && wrong.status === 'held') continue;
        expect(wrong).toMatchObject({ status: 'violated' });
        const text = wrong.status === 'violated' ? wrong.statement : '';
        expect(text.startsWith(words), `${text}\n${words}`).toBe(true);
        expect(text).not.toMatch(/differ\)/);
      }
    }
  });

  it('and where one result of the first run is another', async () => {
    const { first, last, rows, vDim } = await runsOf(one, choice);
    const { batch, head, query } = firstPlace(first, last, rows - 1);
    const { heads, queries } = problemShape(first);
    const at = ((batch * heads + head) * queries + query) * vDim;
    const kernel = movedIn(0, 'out', at);
    const wrong = await tryLaw(law, { problem, choice }, { strength: 'bits', kernel, promises });
    const text = wrong.status === 'violated' ? wrong.statement : wrong.status;
    expect(text).toContain(`O at ${describePlace({ batch, head, query, column: 0 })} is `);
  });

  it('within the bound of right results, and not where one result is far off', async () => {
    // An audit takes as long as all other forms together.
    const isFirst = choice === (one.choices ?? [0])[0];
    if (!isFirst || !laws[law].strengths.some((strength) => strength === 'bound')) return;
    const right = await tryLaw(law, { problem, choice }, { strength: 'bound', promises });
    expect(right.status).toBe('held');
    const count = right.status === 'held' ? right.runs.length : 0;
    expect(count).toBe(1);
    const kernel = movedIn(0, 'out', 0);
    const wrong = await tryLaw(law, { problem, choice }, { strength: 'bound', kernel, promises });
    expect(wrong.status).toBe('violated');
  });
});
