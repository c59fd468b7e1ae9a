import { describe, expect, it } from 'vitest';
import { capturedKernel, capturedKernels } from '../../fixtures/captured-ptx.js';
import { fromEnvironment } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { runCaptured } from './captured-launch.js';

const inTurn = turns(import.meta.url);

/** What an H200 made depends on the order in which its CTAs or warps came. */
const scheduleDependent: readonly string[] = ['triton-split-k'];
const small: readonly string[] = ['nvcc-atomics', 'triton-softmax'];
/** Kernels of which a default run makes the first CTA alone. */
const large: readonly string[] = [
  ...['triton-sm80-d64', 'triton-tma-d128', 'triton-wgmma-d64', 'triton-wgmma-d64-tails-causal'],
];
const isWhole = fromEnvironment('LONG', 0) === 1;

/** Instructions that do not run yet. */
const missing = /\brcp\.approx\.ftz\.f64/;

const withResults = capturedKernels.filter(
  ({ name, results }) =>
    results !== 'none' &&
    !scheduleDependent.includes(name) &&
    !missing.test(bodyOf(capturedKernel(name))),
);

/** The text of a kernel and of functions that it may call: a file may have other kernels. */
function bodyOf({ ptx, launch }: ReturnType<typeof capturedKernel>): string {
  return ptx
    .split(/(?=^\.visible \.entry|^\.func)/m)
    .filter((part) => !part.startsWith('.visible') || part.includes(`.entry ${launch.entry}(`))
    .join('');
}

/** Kernels in which several warps write the same value to the same word: a race by the ISA, whatever comes first. */
const sameWrites: readonly string[] = ['triton-counts'];

async function expectSilicon(name: string): Promise<void> {
  const isPart = large.includes(name) && !isWhole;
  const runs = (cluster: number) => cluster === 0;
  const { run, differences } = await runCaptured(name, isPart ? { runs } : {});
  const found = run.findings.filter(({ kind }) => kind !== 'overwritten-unread');
  const kinds = new Set(found.map(({ kind }) => kind));
  expect([...kinds]).toEqual(sameWrites.includes(name) ? ['race'] : []);
  expect(run.isComplete).toBe(true);
  expect(differences.size).toBeGreaterThan(0);
  for (const [output, { differing, of }] of differences) {
    expect([output, differing]).toEqual([output, 0]);
    expect(of).toBeGreaterThan(0);
  }
}

describe('a captured kernel gives the bytes of an H200, without a finding', () => {
  it.each(small)('%s', expectSilicon);
  inTurn.each(withResults.filter(({ name }) => !small.includes(name)))(
    '$name',
    ({ name }) => expectSilicon(name),
    60_000,
  );
});

it('pairs that an assembler contracts give its bytes when they are asked for', async () => {
  const { run, differences } = await runCaptured('nvcc-bfloat-pairs', { contract: true });
  expect(run.contractions).toHaveLength(1);
  for (const [output, { differing }] of differences)
    expect([output, differing]).toEqual([output, 0]);
});

describe('a kernel for Blackwell runs to its end', () => {
  inTurn.each(['triton-sm100-d64', 'triton-sm100-tma-d64'])(
    '%s: without a finding',
    async (name) => {
      const { run } = await runCaptured(name);
      expect(run.findings).toEqual([]);
      expect(run.isComplete).toBe(true);
    },
  );
});
