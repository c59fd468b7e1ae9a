import { describe, expect, it } from 'vitest';
import { turns } from '../../setup/turns.js';
import { runBody } from './run-body.js';

const inTurn = turns(import.meta.url);

/**
 * Each CTA adds 1 to a counter behind `out`, waits until all have, and then reads what the next CTA wrote before: a barrier
 * of the whole grid. `look` polls.
 */
const gridBarrier = (ctas: number, look: string) => `
  add.u32 %r3, %r1, 100;
  st.global.u32 [%rd1], %r3;
  bar.sync 0;
  add.u64 %rd3, %rd2, 512;
  @!%p0 bra MET;
  fence.acq_rel.gpu;
  atom.add.relaxed.gpu.global.u32 %r4, [%rd3], 1;
POLL:
  ${look}
  setp.lt.u32 %p1, %r4, ${ctas};
  @%p1 bra POLL;
  fence.acq_rel.gpu;
MET:
  bar.sync 0;
  add.u32 %r5, %r1, 1;
  rem.u32 %r5, %r5, ${ctas};
  mad.lo.u32 %r5, %r5, 64, %r0;
  mad.wide.u32 %rd4, %r5, 4, %rd0;
  ld.global.u32 %r6, [%rd4];
  mad.lo.u32 %r5, %r1, 64, %r0;
  mad.wide.u32 %rd5, %r5, 4, %rd2;
  add.u64 %rd5, %rd5, 1024;
  st.global.u32 [%rd5], %r6;`;

const looks = {
  'a load': 'ld.relaxed.gpu.global.u32 %r4, [%rd3];',
  'an atomic': 'atom.add.relaxed.gpu.global.u32 %r4, [%rd3], 0;',
  'a load after a sleep': 'nanosleep.u32 64; ld.relaxed.gpu.global.u32 %r4, [%rd3];',
};

describe('CTAs that wait for others of their grid', () => {
  it.each(Object.entries(looks))('meet at a barrier of the grid, by %s', async (_, look) => {
    const ctas = 5;
    const input = new Uint8Array(1024 + 4 * 64 * ctas);
    const { kinds, result } = await runBody(gridBarrier(ctas, look), { ctas, input });
    expect(kinds).toEqual([]);
    expect(result.isComplete).toBe(true);
    expect(result.clusters).toBe(ctas);
    const words = new Uint32Array(result.tensors.get('in')!.slice().buffer, 1024);
    expect([...words]).toEqual(
      Array.from({ length: 64 * ctas }, (_one, i) => 100 + ((Math.floor(i / 64) + 1) % ctas)),
    );
    // Which look showed the last arrival is the schedule's choice.
    expect(result.speaksForAllSchedules).toBe(false);
  });

  it('find a race where the barrier orders nothing', async () => {
    const ctas = 3;
    const input = new Uint8Array(1024 + 4 * 64 * ctas);
    const text = gridBarrier(ctas, looks['a load']).replaceAll('fence.acq_rel.gpu;', '');
    const { kinds } = await runBody(text, { ctas, input });
    expect(new Set(kinds)).toEqual(new Set(['race']));
  });

  inTurn('for one that never comes are a deadlock, with who waits where', async () => {
    const input = new Uint8Array(4096);
    const text = gridBarrier(2, looks['a load']).replace('%p1, %r4, 2;', '%p1, %r4, 3;');
    const { kinds, result } = await runBody(text, { ctas: 2, input });
    expect(kinds).toEqual(['deadlock', 'deadlock']);
    expect(result.isComplete).toBe(false);
    expect(result.findings[0].message).toMatch(
      /steps of polling that nothing ends; CTA \(0, 0, 0\) warp 0 .*is at "line/,
    );
  });

  inTurn('that read on, or count, do not poll', async () => {
    // More looks than a cluster may poll, each of a new address or with a new value.
    const text = `
  mov.u32 %r3, 0;
  add.u64 %rd3, %rd2, 0;
LOOP:
  and.b32 %r5, %r3, 1023;
  mad.wide.u32 %rd3, %r5, 4, %rd2;
  ld.global.u32 %r6, [%rd3];
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 8000;
  @%p1 bra LOOP;
  st.global.u32 [%rd1], %r3;`;
    const { kinds, words } = await runBody(text, { ctas: 2 });
    expect(kinds).toEqual([]);
    expect(new Set(words)).toEqual(new Set([8000]));
  });
});
