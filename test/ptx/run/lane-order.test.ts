import { describe, expect, it } from 'vitest';
import { memoryModels } from '../../../src/machine/index.js';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { turns } from '../../setup/turns.js';
import { runCaptured } from './captured-launch.js';
import { launchBody } from './run-body.js';

const inTurn = turns(import.meta.url);
const declarations = '.shared .align 16 .b8 cells[512]; .shared .align 8 .b64 bar;';

/** Each thread stores its word, and reads that of its neighbour in the warp; what comes between. */
const exchange = (between: string) => `
  mov.u32 %r3, cells; mov.u32 %r20, bar;
  mad.lo.u32 %r4, %r0, 4, %r3;
  xor.b32 %r5, %r0, 1;
  mad.lo.u32 %r6, %r5, 4, %r3;
  @%p0 mbarrier.init.shared::cta.b64 [%r20], 64;
  bar.sync 1;
  st.shared.u32 [%r4], %r0;
  ${between}
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd1], %r7;`;

async function found(body: string, model: keyof typeof memoryModels) {
  const { ptx, launch } = await launchBody(body, { declarations });
  const options = { file: 'kernel.ptx', model: memoryModels[model] };
  return runLaunch(parsePtx(ptx), launch, options).findings;
}

describe('lanes that exchange through shared memory', () => {
  const loose = ['practice', 'pipe'] as const;
  const strict = ['ptx', 'ptx-9.2'] as const;

  it.each([
    ['nothing', ''],
    ['a shuffle', 'shfl.sync.idx.b32 %r8, %r0, 0, 31, -1;'],
    ['a vote', 'vote.sync.any.pred %p1, %p0, -1;'],
    ['a fence', 'fence.acq_rel.cta;'],
  ])('race by the letter of the ISA with %s between', async (_, between) => {
    for (const model of strict) {
      const findings = await found(exchange(between), model);
      expect(findings.map(({ kind }) => kind)).toEqual(['race', 'race']);
      expect(findings[0].message).toMatch(
        /shared memory, byte \d+: lane 0 reads what lane 1 of its warp writes with no bar\.warp\.sync/,
      );
    }
    for (const model of loose) expect(await found(exchange(between), model)).toEqual([]);
  });

  it.each([
    ['bar.warp.sync', 'bar.warp.sync -1;'],
    ['a barrier of the CTA', 'bar.sync 0;'],
    [
      'an mbarrier on which they arrive',
      `mbarrier.arrive.shared::cta.b64 _, [%r20];
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r20], 0;`,
    ],
  ])('are ordered by %s', async (_, between) => {
    for (const model of strict) expect(await found(exchange(between), model)).toEqual([]);
  });

  it('race where one overwrites what another has to read', async () => {
    const body = exchange('bar.warp.sync -1;') + '\n  st.shared.u32 [%r4], %r7;';
    expect((await found(body, 'ptx')).map(({ message }) => message).join()).toContain(
      'writes what lane 1 of its warp reads',
    );
  });

  it('have bytes of a word for themselves', async () => {
    const bytes = `
  mov.u32 %r3, cells; add.u32 %r4, %r3, %r0;
  cvt.u16.u32 %h0, %r0;
  st.shared.u8 [%r4], %h0;
  ld.shared.u8 %h1, [%r4];`;
    expect(await found(bytes, 'ptx')).toEqual([]);
  });
});

inTurn.each(['triton-softmax', 'triton-layer-norm', 'triton-sm80-d64', 'nvcc-fa4-forward-d64'])(
  '%s has bar.warp.sync where it needs one',
  async (name) => {
    const runs = (cluster: number) => cluster === 0;
    const { run } = await runCaptured(name, { model: memoryModels.ptx, runs });
    expect(run.findings.filter(({ message }) => message.includes('bar.warp.sync'))).toEqual([]);
  },
);
