import { expect, it } from 'vitest';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { kernelText, launchOf, tensorOf } from '../launch/launches.js';

it('a launch runs on copies of its tensors', async () => {
  const ptx = kernelText('.param .u64 q, .param .u64 s');
  const q = tensorOf('q', 100);
  q.bytes.fill(7);
  const file = { grid: [3], parameters: [{ tensor: 'q' }, { scratch: 64 }] };
  const launch = await launchOf(file, { ptx, tensors: [q] });
  const run = runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
  expect(run).toMatchObject({ isComplete: true, clusters: 3, findings: [] });
  expect(run.tensors.get('q')).toEqual(q.bytes);
  expect(run.tensors.get('q')).not.toBe(q.bytes);
});
