import { describe, expect, it } from 'vitest';
import { findingWeight, memoryModels } from '../../../src/machine/index.js';
import { capturedKernels } from '../../fixtures/captured-ptx.js';
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

const withResults = capturedKernels.filter(
  ({ name, results }) => results !== 'none' && !scheduleDependent.includes(name),
);

async function expectSilicon(name: string): Promise<void> {
  const isPart = large.includes(name) && !isWhole;
  const runs = (cluster: number) => cluster === 0;
  const { run, differences } = await runCaptured(name, isPart ? { runs } : {});
  const found = run.findings.filter(({ kind }) => findingWeight(kind) !== 'hint');
  expect([...new Set(found.map(({ kind }) => kind))]).toEqual([]);
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
  const expectKinds = async (name: string, kinds: readonly string[]) => {
    const { run } = await runCaptured(name);
    expect([...new Set(run.findings.map(({ kind }) => kind))]).toEqual(kinds);
    expect(run.isComplete).toBe(true);
    return run;
  };

  inTurn('triton-sm100-d64: without a finding', async () => {
    await expectKinds('triton-sm100-d64', []);
  });

  inTurn('triton-sm100-tma-d64: it goes without fences after it initialises barriers', async () => {
    const { speaksForAllSchedules } = await expectKinds('triton-sm100-tma-d64', [
      'unfenced-initialisation',
    ]);
    expect(speaksForAllSchedules).toBe(true);
  });

  inTurn('triton-sm100-tma-d64: of which the letter of the ISA makes a race', async () => {
    const runs = (cluster: number) => cluster === 0;
    const { run } = await runCaptured('triton-sm100-tma-d64', { model: memoryModels.ptx, runs });
    expect(run.findings.map(({ message }) => message).join('\n')).toContain(
      'counted with no fence.mbarrier_init or fence.proxy.async after the initialisation',
    );
  });

  inTurn(
    'triton-sm100-warp-specialised-d64: nobody waits for its last tcgen05.commit',
    async () => {
      const { findings } = await expectKinds('triton-sm100-warp-specialised-d64', [
        'unfenced-initialisation',
        'stray-commit',
      ]);
      for (const { kind, accesses } of findings)
        if (findingWeight(kind) !== 'hint') expect(accesses[0].site).toContain('line 1340');
    },
  );
});
