import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const declarations = `
  .shared .align 16 .b8 here[1024];
  .shared .align 8 .b64 bar;`;

/** A barrier of each CTA that expects so many bytes, and the addresses of the other CTA: %r10 of the thread's 16 bytes, %r11 of its barrier. */
const prepare = (bytes: number) => `
  mov.u32 %r3, bar;
  mov.u32 %r4, here;
  mad.lo.u32 %r5, %r0, 16, %r4;
  st.shared.v4.u32 [%r5], {5, 5, 5, 5};
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], ${bytes};
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r9, %cluster_ctarank;
  xor.b32 %r9, %r9, 1;
  mapa.shared::cluster.u32 %r10, %r5, %r9;
  mapa.shared::cluster.u32 %r11, %r3, %r9;
  add.u32 %r8, %r2, 7;`;

/** Waits for the bytes, and hands out the sum of the thread's 16 bytes as words. */
const hand = (wait = 'mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0;') => `
  ${wait}
  ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r5];
  mad.lo.u32 %r20, %r21, 1000, %r20;
  mad.lo.u32 %r20, %r22, 10, %r20;
  mad.lo.u32 %r20, %r23, 10, %r20;
  st.global.u32 [%rd1], %r20;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;`;

const pair = { ctas: 2, cluster: 2, declarations };
/** The number that the thread of the other CTA has in %r8. */
const others = Array.from({ length: 128 }, (_, i) => ((i + 64) % 128) + 7);

describe('asynchronous stores into another CTA', () => {
  it('arrive with their bytes', async () => {
    const { words, kinds } = await runBody(
      `${prepare(1024)}
  st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r10], {%r8, 2, 3, 4}, [%r11];
  ${hand()}`,
      pair,
    );
    expect(kinds).toEqual([]);
    expect(words).toEqual(others.map((one) => one + 2070));
  });

  it('are races without a wait, and deadlocks where bytes are missing', async () => {
    const store = 'st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r10], %r8, [%r11];';
    expect((await runBody(`${prepare(256)}${store}${hand('')}`, pair)).kinds).toContain('race');
    expect((await runBody(`${prepare(260)}${store}${hand()}`, pair)).kinds).toContain('deadlock');
  });

  it('count their bytes where they go', async () => {
    const { kinds } = await runBody(
      `${prepare(256)}
  st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r10], %r8, [%r3];`,
      pair,
    );
    expect(kinds).toContain('instruction-shape');
  });

  it('reduce what is there', async () => {
    const { words, kinds } = await runBody(
      `${prepare(1024)}
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r10], %r8, [%r11];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r10+4], 6, [%r11];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 [%r10+8], 1, [%r11];
  add.u32 %r12, %r10, 12;
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r12], 5, [%r11];
  ${hand()}`,
      pair,
    );
    expect(kinds).toEqual([]);
    // 5 + x, max(5, 6), 5 xor 1, and 5 that wraps around to 0.
    expect(words).toEqual(others.map((one) => 5 + one + 6000 + 40));
  });

  it('have only the forms of the ISA', async () => {
    const form = (text: string) => runBody(`${prepare(256)}${text}`, pair);
    const bytes = 'mbarrier::complete_tx::bytes';
    await expect(
      form(`red.async.relaxed.cluster.shared::cluster.${bytes}.add.f32 [%r10], %r8, [%r11];`),
    ).rejects.toThrow('add.f32');
    await expect(form('st.async.release.gpu.global.b32 [%rd1], %r8;')).rejects.toThrow('st.async');
  });
});

describe('filling', () => {
  it('makes a region zero', async () => {
    const { words, kinds } = await runBody(
      `
  mov.u32 %r4, here;
  mad.lo.u32 %r5, %r0, 4, %r4;
  st.shared.u32 [%r5], 9;
  bar.sync 0;
  @%p0 st.bulk.weak.shared::cta [%r4+8], 200, 0;
  bar.sync 0;
  ld.shared.u32 %r6, [%r5];
  st.global.u32 [%rd1], %r6;`,
      { declarations, target: 'sm_100a' },
    );
    expect(kinds).toEqual([]);
    expect(words).toEqual([9, 9, ...Array<number>(50).fill(0), ...Array<number>(12).fill(9)]);
  });
});
