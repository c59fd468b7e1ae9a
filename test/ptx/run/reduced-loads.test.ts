import { describe, expect, it } from 'vitest';
import { memoryModels } from '../../../src/machine/index.js';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchBody, runBody } from './run-body.js';

const declarations = '.shared .align 16 .b8 place[16];';
const columns = 4;

/**
 * Two warps, each of which puts four words of each lane (`in`) into its lanes of tensor memory, loads them reduced, and stores the
 * reduction; `wait` stands between the load and that.
 */
const reduced = (modifiers: string, wait = 'tcgen05.wait::ld.sync.aligned;') => `
  mov.u32 %r3, place;
  setp.lt.u32 %p1, %r0, 32;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 32;
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  bar.sync 0;
  ld.shared.u32 %r4, [%r3];
  shr.u32 %r5, %r0, 5;
  shl.b32 %r5, %r5, 21;
  add.u32 %r5, %r4, %r5;
  mad.wide.u32 %rd3, %r0, 16, %rd2;
  ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd3];
  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5], {%r10, %r11, %r12, %r13};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.red.sync.aligned.32x32b.x4.${modifiers} {%r20, %r21, %r22, %r23}, %r24, [%r5];
  ${wait}
  st.global.u32 [%rd1], %r24;
  tcgen05.wait::ld.sync.aligned;
  bar.sync 0;
  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;`;

const bitsOf = (value: number) => new Uint32Array(Float32Array.of(value).buffer)[0];
const nan = 0x7fffffff;
const [one, two, minusThree, subnormal, minusZero, payload] = [
  ...[1, 2, -3, 2 ** -149, -0].map(bitsOf),
  0xffc00123,
];

/** Words of a thread, and what they are reduced to. */
const cases: readonly (readonly [string, readonly number[], number])[] = [
  ['max.f32', [one, two, minusThree, subnormal], two],
  ['min.f32', [one, two, minusThree, subnormal], minusThree],
  ['max.abs.f32', [one, two, minusThree, subnormal], bitsOf(3)],
  ['min.abs.f32', [one, two, minusThree, subnormal], subnormal],
  ['max.f32', [minusZero, 0, minusZero, minusZero], 0],
  ['min.f32', [minusZero, 0, 0, 0], minusZero],
  ['max.f32', [payload, one, payload, minusThree], one],
  ['max.NaN.f32', [payload, one, payload, minusThree], nan],
  ['max.f32', [payload, payload, payload, payload], nan],
  ['max.u32', [1, 0x80000000, 7, 9], 0x80000000],
  ['min.s32', [1, 0x80000000, 7, 9], 0x80000000],
  ['max.s32', [1, 0x80000000, 7, 9], 9],
];

describe('loads of tensor memory that reduce', () => {
  it.each(cases)('%s of %j is %i', async (modifiers, words, expected) => {
    // A thread has the words turned by its number, so that a value is not told by its place.
    const input = Uint32Array.from(
      { length: 64 * columns },
      (_, i) => words[(i + (i >> 2)) % columns],
    );
    const { words: results, kinds } = await runBody(reduced(modifiers), {
      declarations,
      target: 'sm_103a',
      input: new Uint8Array(input.buffer),
    });
    expect(kinds).toEqual([]);
    expect(results).toEqual(Array(64).fill(expected));
  });

  it('fill their registers as other loads do: by the letter of PTX they are read after the wait', async () => {
    const wait = 'tcgen05.wait::ld.sync.aligned;';
    for (const [after, isRight] of [
      [wait, true],
      ['', false],
    ] as const) {
      const body = reduced('max.u32', after);
      const { ptx, launch } = await launchBody(body, { declarations, target: 'sm_103a' });
      const model = memoryModels.ptx;
      const { findings } = runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx', model });
      expect(findings.some(({ message }) => /used before tcgen05\.wait::ld/.test(message))).toBe(
        !isRight,
      );
    }
  });

  it.each(['max.abs.u32', 'max.f16'])('are refused for %s', async (modifiers) => {
    await expect(runBody(reduced(modifiers), { declarations, target: 'sm_103a' })).rejects.toThrow(
      /tcgen05\.ld/,
    );
  });
});
