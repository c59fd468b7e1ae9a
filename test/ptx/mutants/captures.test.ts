import { expect } from 'vitest';
import { createMutantJudge, programMutants } from '../../../src/ptx/mutants/index.js';
import { prepareLaunch } from '../../../src/ptx/run/index.js';
import { openCaptured } from '../run/captured-launch.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

async function judgeCaptured(name: string) {
  const { module, launch, options } = await openCaptured(name);
  const prepared = prepareLaunch(module, launch, options);
  return { mutants: programMutants(prepared.program), ...createMutantJudge(prepared) };
}

inTurn('a softmax needs each of its barriers where it is', async () => {
  const { mutants, base, judge } = await judgeCaptured('triton-softmax');
  expect(base.speaksForAllSchedules).toBe(true);
  expect(mutants).toHaveLength(20);
  for (const mutant of sampled(mutants, 5)) expect(judge(mutant).verdict).toBe('found');
});

/** Mutants of an attention kernel for Blackwell of which it is plain what has to come of them, by line and change. */
const known = [
  // K is there before Q·K begins; the phase is awaited by nobody else.
  [182, 'removed', 'found'],
  // Nobody waits for the product of Q and K in any other way.
  [223, 'removed', 'hangs'],
  // Lane by lane P is in tensor memory, of all warps after the barrier.
  [1315, 'removed', 'found'],
  [1650, 'removed', 'found'],
  // The commit of the next Q·K, which is awaited, comes after this P·V in the same thread.
  [1187, 'removed', 'redundant'],
  // The first fence behind the initialisation: commits come without one, or after it all the same.
  [166, 'removed', 'not shown'],
  [166, 'after line 173', 'redundant'],
  // A phase that expects an arrival is not complete before it, whenever bytes come.
  [86, 'after line 94', 'redundant'],
] as const;

inTurn.each(known)('line %d, %s: %s', async (line, change, verdict) => {
  const { mutants, base, judge } = await judgeCaptured('triton-sm100-tma-d64');
  expect(base.speaksForAllSchedules).toBe(true);
  const mutant = mutants.find((one) => one.line === line && one.change.startsWith(change))!;
  expect(judge(mutant)).toMatchObject({ verdict, isOverlooked: false });
});

inTurn('a commit that comes late in the kernel itself counts for no mutant', async () => {
  const { mutants, judge } = await judgeCaptured('triton-sm100-warp-specialised-d64');
  // Two barriers of the CTA, of which the second does all; nothing here has to do with the last commit.
  const mutant = mutants.find(({ line, kind }) => line === 78 && kind === 'remove')!;
  expect(judge(mutant)).toMatchObject({ verdict: 'redundant', isOverlooked: false });
});
