import { afterAll, describe, expect } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { usualChecks } from '../../src/audit/baselines.js';
import { auditAccuracy, auditableOutput, judgeOutputs } from '../../src/audit/index.js';
import { lazily } from '../../src/reuse.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runOnlineKernel } from './online-kernel.js';
import { publishedBugs } from './published-bugs.js';

const inTurn = turns(import.meta.url);

/** What each check says of each bug: true where it lets it pass. */
interface Outcome {
  readonly flashproof: boolean;
  readonly allclose: boolean;
  readonly flashAttention: boolean;
  readonly cosine: boolean;
  readonly cause: string;
}

const outcomes = new Map<string, Outcome>();

/** Every bug with DAMAGE=all, else some that TEST_SEED draws; and what the usual checks say of each. */
const everything = process.env['DAMAGE'] === 'all';

afterAll(() => {
  if (!everything) return;
  const word = (passes: boolean) => (passes ? '-' : 'seen');
  console.log('bug | flashproof | allclose 1e-2 | FlashAttention 2× | cosine 0.999 | cause');
  for (const [bug, { flashproof, allclose, flashAttention, cosine, cause }] of outcomes)
    console.log(
      [bug, ...[flashproof, allclose, flashAttention, cosine].map(word), cause].join(' | '),
    );
  const seen = (check: (outcome: Outcome) => boolean) =>
    [...outcomes.values()].filter((outcome) => !check(outcome)).length;
  console.log(
    [
      `of ${outcomes.size}`,
      seen(({ flashproof }) => flashproof),
      seen(({ allclose }) => allclose),
      seen(({ flashAttention }) => flashAttention),
      seen(({ cosine }) => cosine),
    ].join(' | '),
  );
});

const bugs = Object.entries(publishedBugs);
const tried = everything ? bugs : sampled(bugs, 3);

describe.each(tried)('%s', (name, bug) => {
  const problem = bug.problem();
  const reference = lazily(() => attentionOracle(problem, { accuracy: auditAccuracy('bf16') }));
  const run = (changes: typeof bug.kernel) => {
    const outputs = runOnlineKernel(problem, changes);
    return bug.withoutLse === true ? { ...outputs, lse: null } : outputs;
  };
  const verdictOn = (outputs: ReturnType<typeof run>) =>
    judgeOutputs(problem, outputs, { reference: reference() }).verdict;

  inTurn('the kernel without the bug passes', () => {
    const { outputFormat, block, offset } = bug.kernel;
    const format = outputFormat === undefined ? {} : { outputFormat };
    const sizes = { ...(block === undefined ? {} : { block }), ...(offset ? { offset } : {}) };
    expect(verdictOn(run({ ...format, ...sizes })).findings).toEqual([]);
  });

  inTurn(
    bug.causes.length === 0 ? 'is within what rounding explains' : 'is seen, and named',
    () => {
      const outputs = run(bug.kernel);
      const verdict = verdictOn(outputs);
      if (everything) {
        const { out } = outputs;
        const values = auditableOutput(out, reference().shape);
        const usual = usualChecks(problem, reference(), values, out.format);
        outcomes.set(name, {
          flashproof: verdict.pass,
          allclose: usual.allclose.pass,
          flashAttention: usual.flashAttention.pass,
          cosine: usual.cosine.pass,
          cause: verdict.diagnosis?.id ?? '-',
        });
      }
      expect(verdict.pass, verdict.sentence).toBe(bug.causes.length === 0);
      if (verdict.diagnosis === null) return;
      // Named alone, or among what looks the same on this problem.
      const named = [verdict.diagnosis.id, ...verdict.diagnosis.equivalents];
      expect(
        named.some((id) => bug.causes.includes(id)),
        verdict.sentence,
      ).toBe(true);
    },
  );
});
