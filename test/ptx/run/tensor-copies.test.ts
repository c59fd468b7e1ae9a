import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const declarations = `
  .shared .align 1024 .b8 tile[1024];
  .shared .align 8 .b64 bar;`;

/** Of `out`, as 16 columns of so many bytes and rows, a map behind the two pointers. */
const mapOf = (elementType: string, columns: number, rows: number, elementBytes = 4) => ({
  tensorMap: {
    tensor: 'out',
    elementType,
    globalDim: [columns, rows],
    globalStrides: [columns * elementBytes],
    boxDim: [columns, rows],
  },
});
const withMap = (elementType: string) => ({
  declarations,
  parameters: ', .param .align 128 .b8 map[128]',
  extra: { parameters: [{ tensor: 'out' }, { tensor: 'in' }, mapOf(elementType, 16, 4)] },
});

/** Each thread writes a word of the tile; thread 0 then stores it. */
const storeTile = (instruction: string, after: string) => `
  mov.u32 %r4, tile;
  mad.lo.u32 %r5, %r0, 4, %r4;
  st.shared.u32 [%r5], %r8;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.b64 %rd4, map;
  cvta.param.u64 %rd4, %rd4;
  @%p0 ${instruction};
  @%p0 cp.async.bulk.commit_group;
  ${after}`;
const complete = '@%p0 cp.async.bulk.wait_group 0;';

describe('reductions of tensors by TMA', () => {
  const before = Uint32Array.from({ length: 64 }, (_, i) => 100 + i);
  const output = () => new Uint8Array(before.slice().buffer);

  it.each([
    ['add', 'uint32', 'mov.u32 %r8, %r0;', (i: number) => 100 + 2 * i],
    ['max', 'int32', 'sub.s32 %r8, 140, %r0;', (i: number) => Math.max(100 + i, 140 - i)],
    ['xor', 'uint32', 'mov.u32 %r8, 3;', (i: number) => (100 + i) ^ 3],
  ])('%s of %s', async (operation, type, value, expected) => {
    const { words, kinds } = await runBody(
      value +
        storeTile(
          `cp.reduce.async.bulk.tensor.2d.global.shared::cta.${operation}.tile.bulk_group [%rd4, {0, 0}], [%r4]`,
          complete,
        ),
      { ...withMap(type), output: output() },
    );
    expect(kinds).toEqual([]);
    expect(words).toEqual(Array.from({ length: 64 }, (_, i) => expected(i)));
  });

  it('of numbers keep to the tensor where the box reaches beyond it', async () => {
    for (const [column, row] of [
      [12, 3],
      [-4, -2],
    ]) {
      const ones = new Uint8Array(Float32Array.from({ length: 64 }, () => 1).buffer);
      const { bytes, kinds } = await runBody(
        `cvt.rn.f32.u32 %r8, %r0;${storeTile(
          `cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd4, {${column}, ${row}}], [%r4]`,
          complete,
        )}`,
        { ...withMap('float32'), output: ones },
      );
      expect(kinds).toEqual([]);
      const expected = Array.from({ length: 64 }, (_, i) => {
        const [x, y] = [(i % 16) - column, Math.floor(i / 16) - row];
        return x >= 0 && x < 16 && y >= 0 && y < 4 ? 1 + 16 * y + x : 1;
      });
      expect([...new Float32Array(bytes.buffer)]).toEqual(expected);
    }
  });

  it('have the operations that the elements have', async () => {
    const { kinds } = await runBody(
      `mov.u32 %r8, 1;${storeTile(
        'cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group [%rd4, {0, 0}], [%r4]',
        complete,
      )}`,
      withMap('float32'),
    );
    expect(kinds).toEqual(['instruction-shape']);
  });

  it('of several CTAs are no race, and copies are', async () => {
    const run = (instruction: string) =>
      runBody(
        `add.u32 %r8, %r1, 1;${storeTile(`${instruction} [%rd4, {0, 0}], [%r4]`, complete)}`,
        {
          ...withMap('uint32'),
          ctas: 2,
          output: new Uint8Array(512),
        },
      );
    const reduced = await run(
      'cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group',
    );
    expect(reduced.kinds).toEqual([]);
    expect(reduced.words.slice(0, 64)).toEqual(Array(64).fill(3));
    const copied = await run('cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group');
    expect(copied.kinds).toContain('race');
  });
});

describe('copies into one box that are issued twice', () => {
  const store = 'cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {0, 0}], [%r4]';
  const body = (value: string) => `${value}${storeTile(store, complete)}`;
  const byTwoCtas = (value: string) =>
    runBody(body(value), { ...withMap('uint32'), ctas: 2, output: new Uint8Array(512) });

  it('are no race where all copy the same: lanes of a warp, or CTAs', async () => {
    const byAllLanes = body('mov.u32 %r8, 7;')
      .replaceAll('@%p0 cp', '@%p6 cp')
      .replace('mov.u32', 'setp.lt.u32 %p6, %r0, 32; mov.u32');
    const lanes = await runBody(byAllLanes, withMap('uint32'));
    expect(lanes.kinds).toEqual([]);
    expect(lanes.words.slice(0, 64)).toEqual(Array(64).fill(7));
    expect((await byTwoCtas('mov.u32 %r8, 7;')).kinds).toEqual([]);
  });

  it('are one where one word differs', async () => {
    const value = 'setp.eq.u32 %p6, %r0, 63; selp.u32 %r8, %r1, 7, %p6;';
    expect((await byTwoCtas(value)).kinds).toContain('race');
  });
});

describe('global memory of tensor copies', () => {
  const store = 'cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {0, 0}], [%r4]';
  /** The thread that has stored a tile reads a word of the tensor. */
  const read = '@%p0 ld.global.u32 %r9, [%rd0+8];\n  @%p0 st.shared.u32 [%r4], %r9;';
  const run = (after: string) =>
    runBody(`mov.u32 %r8, 1;${storeTile(store, after)}`, withMap('uint32'));

  it('is written when the group is complete, not when it has been read', async () => {
    expect((await run(`${complete}\n${read}`)).kinds).toEqual([]);
    const early = await run(`@%p0 cp.async.bulk.wait_group.read 0;\n${read}`);
    expect(early.kinds).toContain('race');
    const both = `@%p0 cp.async.bulk.wait_group.read 0;\n${complete}\n${read}`;
    expect((await run(both)).kinds).toEqual([]);
  });

  it('is written once by lanes that store the same box, and reduced by each of them', async () => {
    const all = (text: string) =>
      `mov.u32 %r8, 2;${storeTile(text, complete).replaceAll('@%p0 ', '@%p2 ')}`;
    const firstWarp = 'setp.lt.u32 %p2, %r0, 32;';
    const stored = await runBody(firstWarp + all(store), withMap('uint32'));
    expect(stored.kinds).toEqual([]);
    expect(stored.words).toEqual(Array(64).fill(2));
    const added = await runBody(
      firstWarp + all(store.replace('.tile', '.add.tile').replace('cp.', 'cp.reduce.')),
      withMap('uint32'),
    );
    expect(added.kinds).toEqual([]);
    expect(added.words).toEqual(Array(64).fill(64));
  });

  it('is read in order with what the generic proxy writes', async () => {
    const load = (fence: string) => `
  mov.u32 %r3, bar;
  mov.u32 %r4, tile;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  st.global.u32 [%rd1], %r0;
  ${fence}
  bar.sync 0;
  mov.b64 %rd4, map;
  cvta.param.u64 %rd4, %rd4;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
  @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%rd4, {0, 0}], [%r3];
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;`;
    for (const fence of [
      'fence.proxy.async;',
      'fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;',
    ])
      expect((await runBody(load(fence), withMap('uint32'))).kinds).toEqual([]);
    expect((await runBody(load(''), withMap('uint32'))).kinds).toContain('race');
  });
});
