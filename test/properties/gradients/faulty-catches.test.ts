import { afterAll, describe, expect } from 'vitest';
import {
  checkKernel,
  describeFailures,
  lawIds,
  laws,
  type AttentionKernel,
  type Law,
  type LawId,
} from '../../../properties/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { backwardKernel, faultyBackwards } from '../../kernels/gradients/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { gradientPromises, kernelOf } from './kernel-of.js';

const inTurn = turns(import.meta.url);

/**
 * Every fault is to be caught within this many problems per law. By default some of them, drawn by TEST_SEED, by one law;
 * GRADIENT_BUGS=all tries every one by all laws, simplifies what it finds, and prints the table of docs/reference/properties.md.
 */
const problemsPerLaw = 100;
const seed = Number(process.env['CHECK_SEED'] ?? 20_261_122);
const everything = process.env['GRADIENT_BUGS'] === 'all';

/** A law that sees each fault soon; where none is named, gradients-within-bound. */
const seenBy: Readonly<Partial<Record<string, LawId>>> = {
  'blocks-of-the-backward': 'gradients-of-unseen',
  'delta-half-written': 'gradients-of-level-values',
  'one-query-deep-below': 'gradients-of-one-key',
  'delta-of-stale-output': 'gradients-of-one-key',
  'key-tile-missing': 'gradients-key-permutation',
  'key-tile-twice': 'gradients-key-permutation',
  'key-tile-stale': 'gradients-key-permutation',
  'ds-tile-transposed': 'gradients-key-permutation',
  'heads-of-another-group': 'gradients-grouped',
  'dq-in-16-bits': 'gradients-key-permutation',
  'deterministic-in-name': 'gradients-determinism',
};

/** Faults of one run against another, which plain kernels that give one run's outputs have not. */
function unordered(): AttentionKernel {
  let launches = 0;
  return (problem, conditions) =>
    kernelOf(backwardKernel({ order: 'any', seed: launches++ }))(problem, conditions);
}

const bugs = [
  ...faultyBackwards.map(({ name, source, kernel }) => ({
    name,
    source,
    create: () => kernelOf(kernel),
  })),
  {
    name: 'deterministic-in-name',
    source: 'Dao-AILab/flash-attention #2244',
    create: unordered,
  },
];

const tried = everything ? bugs : sampled(bugs, 2);
const rows: string[] = [];
afterAll(() => {
  if (!everything) return;
  const heading = ['bug', 'source', 'first violated', 'after', 'simplified to'];
  const lines = [heading, heading.map(() => '---')].map((cells) => `| ${cells.join(' | ')} |`);
  console.log([...lines, ...rows].join('\n'));
});

describe('the laws of gradients see', () => {
  inTurn.each(tried)('$name ($source)', { timeout: 600_000 }, async ({ name, source, create }) => {
    const result = await checkKernel(create(), gradientPromises, {
      laws: everything
        ? lawIds.filter((id) => (laws[id] as Law).ofGradients === true)
        : [seenBy[name] ?? 'gradients-within-bound'],
      runs: problemsPerLaw,
      seed,
      bail: true,
      shrinkSeconds: everything ? 2 : 0,
    });
    const failed = result.laws.find(({ failure }) => failure !== null);
    expect(failed?.failure, describeFailures(result)).toBeDefined();
    const { round, runsUntil, lawCase } = failed!.failure!;
    expect(round).toBeLessThanOrEqual(problemsPerLaw);
    const { heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(lawCase.problem);
    const shape = `${heads}${kvHeads === heads ? '' : `/${kvHeads}`} × ${queries} × ${keys} × ${qkDim}${vDim === qkDim ? '' : `/${vDim}`} ${lawCase.problem.q.format}`;
    if (everything) console.log(`${name}: ${failed!.id}, problem ${round}`);
    rows.push(
      `| \`${name}\` | ${source} | ${failed!.id} | problem ${round}, run ${runsUntil} | ${shape} |`,
    );
  });
});
