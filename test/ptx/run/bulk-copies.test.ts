import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const declarations = `
  .shared .align 16 .b8 here[1024];
  .shared .align 16 .b8 there[1024];
  .shared .align 8 .b64 bar;`;

/** Barriers of each CTA of a cluster, ready for all, with one arrival that expects so many bytes. */
const prepare = (bytes: number) => `
  mov.u32 %r3, bar;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], ${bytes};
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;`;
const await0 = 'mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;';
const meetCluster = 'barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;';
/** A thread's word of `here`, to `out`. */
const hand = `
  mov.u32 %r5, here;
  mad.lo.u32 %r5, %r0, 4, %r5;
  ld.shared.u32 %r6, [%r5];
  st.global.u32 [%rd1], %r6;`;

const numbers = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
const input = new Uint8Array(numbers.buffer);
const firstOfInput = [...numbers.subarray(0, 64)];

describe('bulk copies without a tensor map', () => {
  it.each(['shared::cta', 'shared::cluster'])('load into %s and count bytes', async (space) => {
    const { words, kinds } = await runBody(
      `${prepare(256)}
  mov.u32 %r4, here;
  @%p0 cp.async.bulk.${space}.global.mbarrier::complete_tx::bytes [%r4], [%rd2], 256, [%r3];
  ${await0}${hand}`,
      { declarations, input },
    );
    expect(kinds).toEqual([]);
    expect(words).toEqual(firstOfInput);
  });

  it('race with who does not wait for them', async () => {
    const { kinds } = await runBody(
      `${prepare(256)}
  mov.u32 %r4, here;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd2], 256, [%r3];
  ${hand}`,
      { declarations, input },
    );
    expect(kinds).toContain('race');
  });

  it('go to the CTAs of a mask', async () => {
    const { words, kinds } = await runBody(
      `${prepare(256)}
  mov.u32 %r4, here;
  mov.u16 %h0, 3;
  setp.eq.u32 %p2, %r2, 64;
  createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
  @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r4], [%rd2+16], 256, [%r3], %h0, %rd3;
  ${await0}${hand}
  ${meetCluster}`,
      { ctas: 2, cluster: 2, declarations, input },
    );
    expect(kinds).toEqual([]);
    const expected = [...numbers.subarray(4, 68)];
    expect(words).toEqual([...expected, ...expected]);
  });

  const toTheOther = (wait: string) => `${prepare(256)}
  mov.u32 %r4, there;
  mad.lo.u32 %r7, %r0, 4, %r4;
  add.u32 %r8, %r2, 7;
  st.shared.u32 [%r7], %r8;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.u32 %r9, %cluster_ctarank;
  xor.b32 %r9, %r9, 1;
  mov.u32 %r10, here;
  mapa.shared::cluster.u32 %r10, %r10, %r9;
  mapa.shared::cluster.u32 %r11, %r3, %r9;
  @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r4], 256, [%r11];
  ${wait}${hand}
  ${meetCluster}`;

  it('go to another CTA of the cluster', async () => {
    const { words, kinds } = await runBody(toTheOther(await0), {
      ctas: 2,
      cluster: 2,
      declarations,
    });
    expect(kinds).toEqual([]);
    const expected = Array.from({ length: 128 }, (_, i) => ((i + 64) % 128) + 7);
    expect(words).toEqual(expected);
  });

  it('race in the other CTA too', async () => {
    const { kinds } = await runBody(toTheOther(''), { ctas: 2, cluster: 2, declarations });
    expect(kinds).toContain('race');
  });

  const store = (group: string, fence = 'fence.proxy.async;') => `
  mov.u32 %r4, here;
  mad.lo.u32 %r7, %r0, 4, %r4;
  add.u32 %r8, %r2, 7;
  st.shared.u32 [%r7], %r8;
  ${fence}
  bar.sync 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+64], [%r4], 128;
  @%p0 cp.async.bulk.commit_group;
  ${group}`;

  it('store by groups, as many bytes as they are told', async () => {
    const { words, kinds } = await runBody(
      `${store('@%p0 cp.async.bulk.wait_group 0;')}
  @%p0 ld.global.u32 %r9, [%rd0+64];
  @%p0 st.global.u32 [%rd0], %r9;`,
      { declarations },
    );
    expect(kinds).toEqual([]);
    expect(words).toEqual([
      7,
      ...Array<number>(15).fill(0),
      ...Array.from({ length: 32 }, (_, i) => i + 7),
      ...Array<number>(16).fill(0),
    ]);
  });

  it('store once where all lanes store the same', async () => {
    const byAll = store('cp.async.bulk.wait_group 0;').replace(
      /@%p0 (cp\.async\.bulk\.(global|commit))/g,
      '@%p2 $1',
    );
    const { words, kinds } = await runBody(`setp.lt.u32 %p2, %r0, 32;${byAll}`, { declarations });
    expect(kinds).toEqual([]);
    expect(words.slice(16, 48)).toEqual(Array.from({ length: 32 }, (_, i) => i + 7));
  });

  it('are found without a fence, without a wait, and where they are unaligned or outside', async () => {
    const unfenced = await runBody(store('@%p0 cp.async.bulk.wait_group 0;', ''), { declarations });
    expect(unfenced.kinds).toContain('race');
    const unawaited = await runBody(
      `${store('')}
  @%p0 st.shared.u32 [%r4], %r8;`,
      { declarations },
    );
    expect(unawaited.kinds).toContain('race');
    const wrong = await runBody(
      `
  mov.u32 %r4, here;
  @%p0 st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+8], [%r4], 16;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+256], [%r4], 16;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r4], 8;`,
      { declarations },
    );
    expect(wrong.kinds).toEqual(['misaligned', 'out-of-bounds', 'instruction-shape']);
  });
});

describe('bulk reductions', () => {
  /** Adds 128 bytes of `in` to `out`, by way of shared memory. */
  const reduction = (operation: string) => `${prepare(128)}
  mov.u32 %r4, here;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd2], 128, [%r3];
  ${await0}
  @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.${operation} [%rd0], [%r4], 128;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;`;

  const cases: readonly [
    string,
    (length: number, offset: number) => { readonly buffer: ArrayBuffer },
    (a: never, b: never) => number | bigint,
  ][] = [
    [
      'add.u32',
      (length, at) => Uint32Array.from({ length }, (_, i) => 0x7fffffff * (i + at)),
      (a: number, b: number) => a + b,
    ],
    [
      'min.s32',
      (length, at) => Int32Array.from({ length }, (_, i) => (i % 3) - 1 + (at === 0 ? 0 : i % 2)),
      (a: number, b: number) => Math.min(a, b),
    ],
    [
      'xor.b32',
      (length, at) => Uint32Array.from({ length }, (_, i) => 0x01234567 * (i + 2 * at + 1)),
      (a: number, b: number) => a ^ b,
    ],
    [
      'max.u64',
      (length, at) =>
        BigUint64Array.from({ length: length / 2 }, (_, i) =>
          BigInt.asUintN(64, (-1n) ** BigInt(i + at) * 2n ** BigInt(40 + at)),
        ),
      (a: bigint, b: bigint) => (a > b ? a : b),
    ],
    [
      'add.f32',
      (length, at) => Float32Array.from({ length }, (_, i) => 2 ** (i - 16) + at / 3),
      (a: number, b: number) => a + b,
    ],
    [
      'add.f64',
      (length, at) => Float64Array.from({ length: length / 2 }, (_, i) => 2 ** (i - 40) + at / 3),
      (a: number, b: number) => a + b,
    ],
    [
      'add.noftz.bf16',
      // Of bf16 16 numbers 1 + i / 128 and one of them: sums below 4, of which those of odd i round to even.
      (length, at) => Uint16Array.from({ length: 2 * length }, (_, i) => 0x3f80 + at * (i % 128)),
      (a: number, b: number) => {
        const [x, y] = [1 + (a - 0x3f80) / 128, 1 + (b - 0x3f80) / 128];
        const halves = ((x + y) / 2 - 1) * 128;
        const whole = Math.floor(halves);
        const up = halves - whole > 0.5 || (halves - whole === 0.5 && whole % 2 === 1);
        return 0x4000 + whole + Number(up);
      },
    ],
  ];

  it.each(cases)('%s', async (operation, make, combine) => {
    const [before, added] = [make(32, 0), make(32, 1)];
    const { bytes, kinds } = await runBody(reduction(operation), {
      declarations,
      output: new Uint8Array(before.buffer).slice(),
      input: new Uint8Array(added.buffer).slice(),
    });
    const expected = new Uint8Array(before.buffer.slice(0));
    const typed = (before as unknown as Uint32Array).map((a, i) =>
      (combine as (a: number, b: number) => number)(a, (added as unknown as Uint32Array)[i]),
    );
    expected.set(new Uint8Array(typed.buffer));
    expect(kinds).toEqual([]);
    expect(Buffer.from(bytes).toString('hex')).toBe(Buffer.from(expected).toString('hex'));
  });

  it('of CTAs that know nothing of one another are no race', async () => {
    const { words, kinds } = await runBody(reduction('add.u32'), {
      ctas: 2,
      declarations,
      input,
      output: new Uint8Array(512),
    });
    expect(kinds).toEqual([]);
    expect(words.slice(0, 32)).toEqual([...numbers.subarray(0, 32)].map((one) => 2 * one));
  });

  it('flush subnormals of f32, and have only the types of the ISA', async () => {
    const tiny = new Uint8Array(Uint32Array.from({ length: 32 }, () => 0x80000001).buffer);
    const { words, kinds } = await runBody(reduction('add.f32'), {
      declarations,
      input: tiny,
      output: tiny.slice(),
    });
    expect(kinds).toEqual([]);
    expect(words.slice(0, 32)).toEqual(Array(32).fill(0x80000000));
    for (const operation of ['add.s64', 'min.f32', 'exch.b32', 'add.f16x2'])
      await expect(runBody(reduction(operation), { declarations })).rejects.toThrow(
        `.${operation}`,
      );
  });
});
