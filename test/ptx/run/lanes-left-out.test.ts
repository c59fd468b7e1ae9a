import { expect, it } from 'vitest';
import { type LaunchRun, runLaunch } from '../../../src/ptx/run/index.js';
import { turns } from '../../setup/turns.js';
import { openCaptured } from './captured-launch.js';

const inTurn = turns(import.meta.url);

/** A kernel for Blackwell all of whose products have disable-output-lane, four words of a mask; null: none has. */
async function runMasked(mask: number | null): Promise<LaunchRun> {
  const product = /(tcgen05\.mma\.cta_group::1\.kind::f16 \[.*?\](?:, %\w+){3}), (%p\d+);/g;
  const { module, launch, options } = await openCaptured('triton-sm100-d64', (ptx) => {
    if (mask === null) return ptx;
    const edited = ptx.replace(product, '$1, {%left, %left, %left, %left}, $2;');
    expect(edited).not.toBe(ptx);
    return edited.replace('\n{\n', `\n{\n.reg .b32 %left;\nmov.b32 %left, ${mask};\n`);
  });
  return runLaunch(module, launch, { ...options, runs: (cluster) => cluster === 0, races: false });
}

inTurn('a product with disable-output-lane that leaves no lane out is one without', async () => {
  const [plain, masked] = [await runMasked(null), await runMasked(0)];
  expect(masked.findings).toEqual([]);
  expect(masked.tensors).toEqual(plain.tensors);
});

it('a product that leaves lanes of D out is not modelled, and a finding says so', async () => {
  expect((await runMasked(4)).findings[0]).toMatchObject({
    kind: 'instruction-shape',
    message: expect.stringContaining('disable-output-lane') as string,
  });
});
