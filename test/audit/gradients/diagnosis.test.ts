import { describe, expect } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { seededRandom } from '../../kernels/features/index.js';
import { drawDout, faultyBackwards } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What each faulty kernel's gradients are explained by; those that are not listed by nothing. */
const causes: Readonly<Record<string, string>> = {
  'blocks-of-the-backward': 'mask-ignored',
  'dv-stride': 'wrong-stride',
  'delta-half-written': 'delta-columns',
  'scale-missing-dq': 'scale-missing',
  'scale-missing-dk': 'scale-missing',
  'scale-twice': 'scale-twice',
  'scale-on-dv': 'scale-moved',
  'delta-missing': 'delta-missing',
  'delta-of-next-row': 'delta-next-row',
  'delta-of-stale-output': 'delta-of-other-output',
  'capped-delta-missing': 'delta-missing',
  'sink-left-out': 'sink-missing',
  'lse-of-other-head': 'statistics-of-others',
  'lse-base-2': 'lse-natural-for-base-2',
  'mask-top-left': 'mask-top-left',
  'mask-off-by-one': 'mask-off-by-one',
  'mask-off-by-two': 'mask-off-by-two',
  'softcap-derivative-missing': 'softcap-derivative-missing',
  'dropout-of-next-key': 'dropout-of-another',
  'dropout-not-scaled': 'dropout-factor',
  'key-tile-missing': 'key-tile-missing',
  'key-tile-twice': 'key-tile-twice',
  'query-tile-missing': 'query-tile-missing',
  'query-tile-twice': 'query-tile-twice',
  'key-tile-stale': 'key-tile-stale',
  'query-tile-stale': 'query-tile-stale',
  'key-tile-of-96-missing': 'key-tile-missing',
  'key-tile-of-192-twice': 'key-tile-twice',
  'query-tile-of-32-missing': 'query-tile-missing',
  'query-tile-of-96-twice': 'query-tile-twice',
  'p-tile-transposed': 'tile-transposed',
  'ds-tile-transposed': 'tile-transposed',
  'one-head-of-group': 'group-one-head',
  'heads-of-another-group': 'heads-of-another-group',
  'dq-in-16-bits': 'narrow-sums',
  'dk-dv-in-16-bits': 'narrow-sums',
  'dq-tiles-in-16-bits': 'narrow-sums',
  'dq-steps-in-16-bits': 'narrow-sums',
  'dq-atomics-in-16-bits': 'narrow-sums',
  'dv-tiles-in-16-bits': 'narrow-sums',
  'dk-dv-tiles-in-16-bits': 'narrow-sums',
  'one-query-deep-below': 'lse-overflow',
  'deep-rows-overflow': 'lse-overflow',
  'accumulator-not-zeroed': 'accumulator-not-zeroed',
  'sums-of-last-launch': 'accumulator-not-zeroed',
  'sums-of-last-tile': 'accumulator-not-zeroed',
  'sums-of-heads-before': 'accumulator-not-zeroed',
  'statistics-too-early': 'statistics-of-others',
  'statistics-of-next-row': 'statistics-of-others',
  'statistics-zero': 'statistics-zero',
  'packed-as-padded': 'statistics-as-padded',
  'nan-of-padding': 'padding-nan',
  'sink-of-first-entry': 'batch-entry-repeated',
  // Of two batch entries the last alone is all but the first.
  'bias-of-last-entry': 'batch-entry-missing',
  'bias-scaled': 'scale-in-bias',
};

const isTable = process.env['GRADIENTS_TABLE'] !== undefined;
const names = faultyBackwards.map(({ name }) => name);

describe('the cause of the gradients of faulty kernels', () => {
  /** A kernel's verdict on its example. */
  const verdictOf = (name: string, seed: number) => {
    const { kernel, example } = faultyBackwards.find((one) => one.name === name)!;
    const problem = example(seededRandom(seed));
    const dout = drawDout(seededRandom(seed + 1), problem);
    return auditGradients(problem, { dout, ...kernel(problem, dout) }).verdict;
  };

  inTurn.each(isTable ? names : sampled(names, 2))('%s', (name) => {
    const verdict = verdictOf(name, 5);
    if (isTable)
      console.info(
        `@ ${name} | ${verdict.diagnosis?.id} | ${verdict.sentence} ${verdict.diagnosis?.evidence.join('; ')}`,
      );
    expect(verdict.pass).toBe(false);
    expect(verdict.diagnosis?.id, verdict.sentence).toBe(causes[name] ?? 'unexplained');
  });

  // Where rows that see nothing forwards do backwards there are NaNs, which are not explained.
  inTurn.each(sampled(names, 1))('%s, whose cause on any problem is it or unexplained', (name) => {
    const { diagnosis, sentence } = verdictOf(name, testSeed);
    expect(['unexplained', causes[name]], sentence).toContain(diagnosis?.id);
  });
});
