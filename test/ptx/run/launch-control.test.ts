import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const declarations = `
  .shared .align 16 .b8 answer[16];
  .shared .align 8 .b64 bar;`;
const multicast = '.multicast::cluster::all';

/**
 * CTAs that add 1 to the words of their tile, and then to those of the clusters whose launches they cancel; rank 0 of a
 * cluster asks for both.
 */
const persistent = (all: string, fence = 'fence.proxy.async.shared::cta;') => `
  mov.u32 %r3, bar;
  mov.u32 %r4, answer;
  mov.u32 %r9, %cluster_ctarank;
  mov.u32 %r10, 0;
  setp.eq.and.u32 %p3, %r9, 0, %p0;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
LOOP:
  @%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%r3], 16;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @${all === '' ? '%p0' : '%p3'} clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes${all}.b128 [%r4], [%r3];
  mad.lo.u32 %r2, %r1, 64, %r0;
  mad.wide.u32 %rd1, %r2, 4, %rd0;
  ld.global.u32 %r11, [%rd1];
  add.u32 %r11, %r11, 1;
  st.global.u32 [%rd1], %r11;
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], %r10;
  xor.b32 %r10, %r10, 1;
  ld.shared.b128 %q0, [%r4];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
  @!%p2 bra END;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r12, %r13, _, _}, %q0;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r14, %q0;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r15, %q0;
  max.u32 %r12, %r12, %r14;
  mad.lo.u32 %r13, %r15, 3, %r12;
  add.u32 %r1, %r13, %r9;
  ${fence}
  bra LOOP;
END:`;

describe('launches that running clusters cancel', () => {
  it('are each done once, by who cancels them', async () => {
    const { words, kinds, result } = await runBody(persistent(''), {
      ctas: 6,
      declarations,
      target: 'sm_100a',
      extra: { grid: [3, 2] },
    });
    expect(kinds).toEqual([]);
    expect(words).toEqual(Array(6 * 64).fill(1));
    expect(result.clusters).toBe(1);
    expect(result.speaksForAllSchedules).toBe(false);
  });

  it('are told to all CTAs of a cluster', async () => {
    const { words, kinds } = await runBody(persistent(multicast), {
      ctas: 6,
      cluster: 2,
      declarations,
      target: 'sm_100a',
    });
    expect(kinds).toEqual([]);
    expect(words).toEqual(Array(6 * 64).fill(1));
  });

  it('race with who reads the answer and does not wait', async () => {
    const early = persistent('').replace(/mbarrier\.try_wait.*\n/, '\n');
    const { kinds } = await runBody(early, { ctas: 2, declarations, target: 'sm_100a' });
    expect(kinds).toContain('race');
  });
});
