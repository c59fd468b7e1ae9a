import { describe, expect, it } from 'vitest';
import { findCtaMeeting, prepareLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { openCaptured } from './captured-launch.js';
import { launchBody } from './run-body.js';

/** The instruction by which CTAs that execute a body may meet. */
async function meetingOf(body: string): Promise<string | null> {
  const { ptx, launch } = await launchBody(body, { ctas: 2 });
  const { program } = prepareLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
  return findCtaMeeting(program)?.mnemonic ?? null;
}

describe('instructions by which CTAs may meet', () => {
  it.each([
    ['red.global.add.u32', '[%rd0], 1'],
    ['atom.add.u32', '%r3, [%rd0], 1'],
    ['atom.global.acq_rel.gpu.cas.b32', '%r3, [%rd0], 0, 1'],
    ['ld.volatile.global.u32', '%r3, [%rd0]'],
    ['ld.acquire.gpu.global.u32', '%r3, [%rd0]'],
    ['ld.relaxed.sys.u32', '%r3, [%rd0]'],
    ['st.release.gpu.global.u32', '[%rd0], 1'],
  ])(
    'are those that hand over values or order in global memory: %s',
    async (mnemonic, operands) => {
      const body = `ld.global.u32 %r3, [%rd2]; ${mnemonic} ${operands};`;
      expect(await meetingOf(body)).toBe(mnemonic);
    },
  );

  it.each([
    'ld.global.u32 %r3, [%rd2]; st.global.u32 [%rd1], %r3;',
    'ld.acquire.cta.global.u32 %r3, [%rd0];',
    'membar.gl;',
  ])('are not %s', async (body) => {
    expect(await meetingOf(body)).toBeNull();
  });

  it.each([
    ['nvcc-atomics', 'atom.global.add.f32'],
    ['nvcc-chained-scan', 'ld.volatile.global.u32'],
    ['triton-split-k', 'atom.global.acq_rel.gpu.cas.b32'],
    ['triton-counts', 'atom.global.gpu.acq_rel.add.u32'],
    ['nvcc-cluster-sum', null],
    ['triton-wgmma-d64', null],
    ['triton-sm100-d64', null],
  ])('are found in compiled kernels, the first of the text: %s', async (name, mnemonic) => {
    const { module, launch, options } = await openCaptured(name);
    const meeting = findCtaMeeting(prepareLaunch(module, launch, options).program);
    expect(meeting?.mnemonic ?? null).toBe(mnemonic);
  });
});
