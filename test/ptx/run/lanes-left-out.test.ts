import { expect } from 'vitest';
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

inTurn('a product that leaves lanes of D out has the rows of the others', async () => {
  const outputOf = (run: LaunchRun) => new Uint16Array(run.tensors.get('O')!.slice().buffer);
  const [plain, masked] = [outputOf(await runMasked(null)), outputOf(await runMasked(4))];
  const rowElements = 64;
  const differs = (row: number): boolean =>
    plain
      .subarray(row * rowElements, (row + 1) * rowElements)
      .some((x, i) => x !== masked[row * rowElements + i]);
  // One CTA has 128 rows; the mask leaves lane 2 of each partition out.
  const rows = Array.from({ length: 128 }, (_, row) => row);
  expect(rows.filter(differs)).toEqual([2, 34, 66, 98]);
});
