import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

/** Of `out`, 16 rows of 16 words; boxes of one row of 16 bytes, or of more. */
const mapOf = (boxDim: readonly number[], more: object = {}) => ({
  tensorMap: {
    tensor: 'out',
    elementType: 'float32',
    globalDim: [16, 16],
    globalStrides: [64],
    boxDim,
    ...more,
  },
});
const withMap = (boxDim: readonly number[], more: object = {}) => ({
  declarations: '.shared .align 1024 .b8 tile[1024];\n.shared .align 8 .b64 bar;',
  parameters: ', .param .align 128 .b8 map[128]',
  extra: { parameters: [{ tensor: 'out' }, { tensor: 'in' }, mapOf(boxDim, more)] },
});

const numbers = (count: number) => Float32Array.from({ length: count }, (_, i) => i + 1);
const output = () => new Uint8Array(numbers(256).buffer);

/** Thread 0 loads rows, and each thread stores a word of the tile to its place of the output. */
const gather = (column: number, rows: readonly number[], bytes: number) => `
  mov.u32 %r4, tile;
  mov.u32 %r6, bar;
  mov.b64 %rd4, map;
  cvta.param.u64 %rd4, %rd4;
  @%p0 mbarrier.init.shared.b64 [%r6], 1;
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r6], ${bytes};
  @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r4], [%rd4, {${[column, ...rows].join(', ')}}], [%r6];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r6], 0;
  @!%p1 bra WAIT;
  mad.lo.u32 %r5, %r0, 4, %r4;
  ld.shared.u32 %r8, [%r5];
  bar.sync 0;
  mul.wide.u32 %rd6, %r0, 4;
  ld.param.u64 %rd7, [out];
  add.u64 %rd6, %rd6, %rd7;
  st.global.u32 [%rd6], %r8;`;

describe('copies of four rows that are named one by one', () => {
  it.each([
    ['in any order, one of them twice', 4, [9, 0, 15, 9]],
    ['some of them outside of the tensor', 8, [-1, 3, 16, 2]],
    ['with columns outside of it', 12, [5, 1, 2, 3]],
  ])('load each where it comes: %s', async (_, column, rows) => {
    const { bytes, kinds } = await runBody(gather(column, rows, 4 * 32), {
      ...withMap([8, 1]),
      output: output(),
    });
    expect(kinds).toEqual([]);
    const due = rows.flatMap((row) =>
      Array.from({ length: 8 }, (_, i) =>
        row >= 0 && row < 16 && column + i < 16 ? 16 * row + column + i + 1 : 0,
      ),
    );
    expect([...new Float32Array(bytes.buffer)].slice(0, 32)).toEqual(due);
  });

  it('fill what lies outside with the NaN that the map asks for', async () => {
    const { words, kinds } = await runBody(gather(0, [16, 0, -1, 1], 64), {
      ...withMap([4, 1], { oobFill: 'NAN_REQUEST_ZERO_FMA' }),
      output: output(),
    });
    expect(kinds).toEqual([]);
    const nan = 0x7ff77ff7;
    expect(words.slice(0, 4)).toEqual([nan, nan, nan, nan]);
    expect(words.slice(8, 12)).toEqual([nan, nan, nan, nan]);
    expect([...new Float32Array(Uint32Array.from(words.slice(4, 8)).buffer)]).toEqual([1, 2, 3, 4]);
  });

  it('store each to its place, and nothing outside of the tensor', async () => {
    const store = `
      mov.u32 %r4, tile;
      mad.lo.u32 %r5, %r0, 4, %r4;
      st.shared.u32 [%r5], %r0;
      fence.proxy.async.shared::cta;
      bar.sync 0;
      mov.b64 %rd4, map;
      cvta.param.u64 %rd4, %rd4;
      @%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd4, {4, 7, 2, 16, 0}], [%r4];
      @%p0 cp.async.bulk.commit_group;
      @%p0 cp.async.bulk.wait_group 0;`;
    const { bytes, kinds } = await runBody(store, {
      ...withMap([4, 1]),
      output: new Uint8Array(1024),
    });
    expect(kinds).toEqual([]);
    const due = new Array<number>(256).fill(0);
    [7, 2, 16, 0].forEach((row, k) => {
      for (let i = 0; i < 4 && row < 16; i++) due[16 * row + 4 + i] = 4 * k + i;
    });
    expect([...new Uint32Array(bytes.buffer)]).toEqual(due);
  });

  it('need a map of two dimensions whose boxes have one row', async () => {
    const { result } = await runBody(gather(0, [0, 1, 2, 3], 64), {
      ...withMap([4, 2]),
      output: output(),
    });
    expect(result.findings[0].message).toContain('boxes of 4 × 2; a gather of four rows needs');
  });
});
