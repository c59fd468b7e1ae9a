import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const declarations = `
  .shared .align 1024 .b8 tile[1024];
  .shared .align 128 .b8 made[128];
  .shared .align 8 .b64 bar;`;

/** A map of `out` as 4 rows of 16 words, made in shared memory by thread 0 and put behind `in` by warp 0. */
const make = ({ release = true, rows = 4, type = 3, box = 4 } = {}) => `
  mov.u32 %r3, made;
  cvt.u64.u32 %rd4, %r3;
  mov.u32 %r4, 0;
  mad.lo.u32 %r5, %r0, 4, %r3;
  setp.lt.u32 %p1, %r0, 32;
  @%p1 st.shared.u32 [%r5], %r4;
  bar.warp.sync -1;
  @!%p0 bra MADE;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd4], %rd0;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd4], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd4], 0, 16;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd4], 1, ${box};
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd4], 0, 16;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd4], 1, ${rows};
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd4], 0, 64;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd4], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd4], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd4], ${type};
MADE:
  bar.warp.sync -1;
  add.u64 %rd5, %rd2, 1024;
  ${
    release
      ? '@%p1 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%rd4], 128;'
      : `@%p1 ld.shared.u32 %r6, [%r5];
  mad.wide.u32 %rd6, %r0, 4, %rd5;
  @%p1 st.global.u32 [%rd6], %r6;
  bar.warp.sync -1;`
  }`;
const acquire = '@%p1 fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;';
/** Each thread writes a word, and thread 0 stores the tile by the map. */
const store = `
  mov.u32 %r4, tile;
  mad.lo.u32 %r5, %r0, 4, %r4;
  add.u32 %r8, %r0, 700;
  st.shared.u32 [%r5], %r8;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd5, {0, 0}], [%r4];
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;`;
const options = { declarations, target: 'sm_90a' };

describe('tensor maps that a kernel makes', () => {
  it('are those that TMA uses once they are released and acquired', async () => {
    const { words, kinds } = await runBody(make() + acquire + store, options);
    expect(kinds).toEqual([]);
    expect(words).toEqual(Array.from({ length: 64 }, (_, i) => 700 + i));
  });

  it('keep a copy to the extents that they have', async () => {
    const { words } = await runBody(make({ rows: 3 }) + acquire + store, options);
    expect(words).toEqual(Array.from({ length: 64 }, (_, i) => (i < 48 ? 700 + i : 0)));
  });

  it.each([
    [
      'no acquire',
      make() + store,
      /no fence\.proxy\.tensormap::generic\.acquire has made it known/,
    ],
    ['no release', make({ release: false }) + acquire + store, /nobody released what was written/],
    [
      'a change after the acquire',
      `${make()}${acquire}
  @%p0 tensormap.replace.tile.global_dim.global.b1024.b32 [%rd5], 1, 2;${store}`,
      /was changed after fence\.proxy\.tensormap::generic\.acquire/,
    ],
    [
      'a tensor that is too small',
      make({ rows: 5 }) + acquire + store,
      /its last element ends at byte 320/,
    ],
    [
      'a box that TMA does not take',
      make({ box: 256, type: 9 }) + acquire + store,
      /tensor map of out is wrong/,
    ],
  ])('are findings with %s', async (_, body, message) => {
    const { result, kinds, words } = await runBody(body, options);
    expect(new Set(kinds)).toEqual(new Set(['instruction-shape']));
    expect(result.findings.map((one) => one.message).join('\n')).toMatch(message);
    expect(new Set(words)).toEqual(new Set([0]));
  });

  it('may be released where they were changed', async () => {
    const release = 'fence.proxy.tensormap::generic.release.gpu;';
    const { kinds } = await runBody(make({ release: false }) + release + acquire + store, options);
    expect(kinds).toEqual([]);
  });
});
