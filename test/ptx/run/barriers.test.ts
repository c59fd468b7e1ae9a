import { describe, expect, it } from 'vitest';
import { type MemoryModel, memoryModels } from '../../../src/machine/index.js';
import { runLaunch, type LaunchRun } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchOf, tensorOf } from '../launch/launches.js';

/** Runs the body of a kernel whose %rd0 is `out`, and %rd1 the word of the thread there; 64 threads a CTA. */
async function run(
  body: string,
  { ctas = 1, cluster = 1, model = memoryModels.practice as MemoryModel } = {},
) {
  const ptx = `.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 cell;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mad.lo.s32 %r2, %r1, 64, %r0;
  ld.param.u64 %rd0, [out];
  mad.wide.u32 %rd1, %r2, 4, %rd0;
  setp.eq.u32 %p0, %r0, 0;
${body}
  ret;
}
`;
  const file = {
    grid: [ctas],
    block: [64],
    cluster: [cluster],
    dynamicSharedBytes: 0,
    parameters: [{ tensor: 'out' }],
  };
  const out = tensorOf('out', 4 * 64 * ctas);
  const launch = await launchOf(file, { ptx, tensors: [out] });
  const result = runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx', model });
  const bytes = result.tensors.get('out')!;
  return { result, words: [...new Uint32Array(bytes.slice().buffer)].slice(0, 64 * ctas) };
}

const kindsOf = ({ findings }: LaunchRun) => findings.map(({ kind }) => kind);

describe('barriers of compiled kernels', () => {
  it('reduce predicates over all threads', async () => {
    const { result, words } = await run(`
  and.b32 %r3, %r0, 3;
  setp.eq.u32 %p1, %r3, 1;
  barrier.cta.red.popc.aligned.u32 %r4, 0, %p1;
  bar.red.or.pred %p2, 1, 64, %p1;
  bar.red.and.pred %p3, 1, 64, !%p1;
  setp.lt.u32 %p4, %r0, 64;
  bar.red.and.pred %p5, 0, %p4;
  selp.u32 %r5, 100, 0, %p2;
  selp.u32 %r6, 1000, 0, %p3;
  selp.u32 %r7, 10000, 0, %p5;
  add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;
  st.global.u32 [%rd1], %r4;`);
    expect(result.findings).toEqual([]);
    expect(words).toEqual(Array(64).fill(16 + 100 + 10000));
  });

  const pair = (arrival: string) => `
  mov.u32 %r3, bar;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  mov.u32 %r4, %cluster_ctarank;
  xor.b32 %r5, %r4, 1;
  mapa.shared::cluster.u32 %r6, %r3, %r5;
  getctarank.shared::cluster.u32 %r7, %r6;
  mov.u32 %r8, cell;
  mapa.shared::cluster.u32 %r9, %r8, %r5;
  add.u32 %r10, %r4, 40;
  @%p0 st.shared::cluster.u32 [%r9], %r10;
  ${arrival}
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0;
  ld.shared.u32 %r11, [%r8];
  mad.lo.u32 %r11, %r7, 100, %r11;
  st.global.u32 [%rd1], %r11;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;`;

  it('let a CTA arrive on the barrier of another one', async () => {
    const arrive = '@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];';
    const { result, words } = await run(pair(arrive), { ctas: 2, cluster: 2 });
    expect(result.findings).toEqual([]);
    expect(words).toEqual([...Array<number>(64).fill(141), ...Array<number>(64).fill(40)]);
  });

  it('find that nobody arrives on the barrier of another CTA', async () => {
    const { result } = await run(pair(''), { ctas: 2, cluster: 2 });
    expect(kindsOf(result)).toContain('deadlock');
  });

  it('expect fewer arrivals after one is dropped', async () => {
    const { result, words } = await run(`
  mov.u32 %r3, bar;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 2;
  bar.sync 0;
  @%p0 mbarrier.arrive_drop.shared::cta.b64 _, [%r3];
  @%p0 mbarrier.arrive.shared::cta.b64 %rd2, [%r3];
  @%p0 mbarrier.try_wait.shared::cta.b64 %p1, [%r3], %rd2;
  @%p0 mbarrier.arrive.shared::cta.b64 %rd3, [%r3];
  @%p0 mbarrier.test_wait.shared::cta.b64 %p2, [%r3], %rd3;
  @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 16;
  @%p0 mbarrier.arrive.shared::cta.b64 %rd4, [%r3];
  @%p0 mbarrier.test_wait.shared::cta.b64 %p3, [%r3], %rd4;
  selp.u32 %r4, 1, 0, %p2;
  selp.u32 %r5, 2, 0, %p3;
  add.u32 %r4, %r4, %r5;
  @%p0 st.global.u32 [%rd1], %r4;`);
    expect(kindsOf(result)).toEqual(['schedule-dependent', 'schedule-dependent']);
    expect(words[0]).toBe(1);
  });
});

describe('words that all warps write', () => {
  const written = (value: string, more = '') => `
  ${value}
  st.shared.u32 [cell], %r3;
${more}
  bar.sync 0;
  ld.shared.u32 %r4, [cell];
  st.global.u32 [%rd1], %r4;`;

  it('have no race where they write the same, but by the letter of the ISA', async () => {
    const { result, words } = await run(written('mov.u32 %r3, 7;'));
    expect(result.findings).toEqual([]);
    expect(words).toEqual(Array(64).fill(7));
    expect(
      kindsOf((await run(written('mov.u32 %r3, 7;'), { model: memoryModels.ptx })).result),
    ).toEqual(['race']);
  });

  it.each([
    ['each its own', written('shr.u32 %r3, %r0, 5;')],
    [
      'the same, which one has read before the others wrote',
      written('mov.u32 %r3, 7;', 'ld.shared.u32 %r5, [cell];'),
    ],
  ])('have one: %s', async (_, body) => {
    expect(kindsOf((await run(body)).result)).toContain('race');
  });

  describe('as matrices', () => {
    /** Both warps store a matrix of 8 × 8 halves at one place. */
    const stored = (value: string) => `
  .shared .align 16 .b8 rows[128];
  ${value}
  and.b32 %r4, %r0, 7;
  shl.b32 %r4, %r4, 4;
  mov.u32 %r5, rows;
  add.u32 %r5, %r5, %r4;
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3};
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];
  st.global.u32 [%rd1], %r6;`;
    const ofLane = 'and.b32 %r3, %r0, 31; mad.lo.u32 %r3, %r3, 65793, 77;';

    it('have no race where all bits are the same, but by the letter of the ISA', async () => {
      const { result, words } = await run(stored(ofLane));
      expect(result.findings).toEqual([]);
      expect(words).toEqual(Array.from({ length: 64 }, (_, i) => (i & 31) * 65793 + 77));
      const strict = await run(stored(ofLane), { model: memoryModels.ptx });
      expect(kindsOf(strict.result)).toEqual(['race']);
    });

    it.each([
      ['low', 1],
      ['high', 1 << 31],
    ])('have one where one lane of the second warp has another %s bit', async (_, bit) => {
      const other = `${ofLane} setp.eq.u32 %p1, %r0, 45; @%p1 xor.b32 %r3, %r3, ${bit};`;
      expect(kindsOf((await run(stored(other))).result)).toEqual(['race']);
    });
  });

  it('tell the arrivals that a phase lacked, and let some not complete it', async () => {
    const body = (count: number) => `
  mov.u32 %r3, bar;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 7;
  @%p0 mbarrier.arrive.shared::cta.b64 %rd2, [%r3], 2;
  @%p0 mbarrier.arrive.noComplete.shared::cta.b64 %rd3, [%r3], ${count};
  @%p0 mbarrier.arrive.shared::cta.b64 _, [%r3], ${5 - count};
  @%p0 mbarrier.try_wait.shared::cta.b64 %p1, [%r3], %rd3;
  @%p0 mbarrier.pending_count.b64 %r4, %rd2;
  @%p0 mbarrier.pending_count.b64 %r5, %rd3;
  mad.lo.u32 %r4, %r4, 10, %r5;
  @%p0 st.global.u32 [%rd1], %r4;`;
    const { result, words } = await run(body(4));
    expect(result.findings).toEqual([]);
    expect(words[0]).toBe(75);
    const { findings } = (await run(body(5))).result;
    expect(findings.map(({ message }) => message).join()).toContain('.noComplete');
  });
});
