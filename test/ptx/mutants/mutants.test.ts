import { describe, expect, it } from 'vitest';
import { turns } from '../../setup/turns.js';
import { judgeBody, type JudgedBody } from './judge-body.js';

const input = new Uint8Array(Uint32Array.from({ length: 1024 }, (_, i) => 1000 + i).buffer);

/** Warp 0 loads three boxes into one buffer; warp 1 hands each on. Each line that orders something has a name. */
const ring = `
  mov.u32 %r3, full; mov.u32 %r4, empty; mov.u32 %r5, box;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;   // init full
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 32;  // init empty
  fence.mbarrier_init.release.cluster;           // initialised
  bar.sync 0;                                    // ready
  mov.u32 %r6, 0;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra consumer;
producer:
  and.b32 %r7, %r6, 1;
  xor.b32 %r7, %r7, 1;
waitEmpty:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r7;  // wait empty
  @!%p2 bra waitEmpty;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;  // expect
  mad.wide.u32 %rd3, %r6, 128, %rd2;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd3], 128, [%r3];  // load
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p3, %r6, 3;
  @%p3 bra producer;
  bra done;
consumer:
  and.b32 %r7, %r6, 1;
waitFull:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r7;  // wait full
  @!%p2 bra waitFull;
  sub.u32 %r8, %r0, 32;
  mad.lo.u32 %r9, %r8, 4, %r5;
  ld.shared.u32 %r10, [%r9];                     // read
  mbarrier.arrive.shared::cta.b64 _, [%r4];      // arrive empty
  mad.lo.u32 %r11, %r6, 32, %r8;
  mad.wide.u32 %rd4, %r11, 4, %rd0;
  st.global.u32 [%rd4], %r10;                    // write
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p3, %r6, 3;
  @%p3 bra consumer;
done:
  bar.sync 0;                                    // extra`;
const ringOptions = {
  declarations: '.shared .align 16 .b8 box[128]; .shared .align 8 .b64 full, empty;',
  input,
  output: new Uint8Array(384),
};

/** The two verdicts by which a mutant is caught in the first schedule. */
const caught = new Set(['found', 'hangs']);

const uncaught = ({ verdicts }: JudgedBody) =>
  Object.fromEntries(Object.entries(verdicts).filter(([, verdict]) => !caught.has(verdict)));

const inTurn = turns(import.meta.url);

describe('mutants of a compiled kernel', () => {
  it('a ring of loads needs all of its barriers but the last', async () => {
    const judged = await judgeBody(ring, ringOptions);
    expect(judged.base).toMatchObject({ findings: [], speaksForAllSchedules: true });
    expect(uncaught(judged)).toEqual({
      // The fence is still behind the initialisation of the barrier that loads use.
      'initialised: before init empty': 'redundant',
      'extra: removed': 'redundant',
      // The consumer arrives there after the first load, which comes after the initialisation.
      'ready: before init empty': 'redundant',
      // The phase is not complete before the arrival, whenever bytes come.
      'expect: after load': 'redundant',
    });
    expect(judged.verdicts).toMatchObject({
      'initialised: removed': 'found',
      'wait full: removed': 'hangs',
      'wait full: after read': 'found',
      'arrive empty: before read': 'found',
      'wait empty: after load': 'found',
      'init full: expects one arrival more': 'hangs',
    });
  });

  it('a barrier between a store and the load of another thread is needed, a second one is not', async () => {
    const { verdicts } = await judgeBody(
      `
  mov.u32 %r3, cells;
  mad.lo.u32 %r4, %r0, 4, %r3;
  st.shared.u32 [%r4], %r0;   // store
  bar.sync 0;                 // needed
  bar.sync 1;                 // second
  xor.b32 %r5, %r0, 32;
  mad.lo.u32 %r6, %r5, 4, %r3;
  ld.shared.u32 %r7, [%r6];   // load
  st.global.u32 [%rd1], %r7;`,
      { declarations: '.shared .align 4 .b8 cells[256];' },
    );
    // Either is enough alone.
    expect(verdicts).toMatchObject({
      'needed: removed': 'redundant',
      'second: removed': 'redundant',
      'needed: before store': 'redundant',
      'second: after load': 'redundant',
    });
    const one = await judgeBody(
      `
  mov.u32 %r3, cells;
  mad.lo.u32 %r4, %r0, 4, %r3;
  st.shared.u32 [%r4], %r0;   // store
  bar.sync 0;                 // needed
  xor.b32 %r5, %r0, 32;
  mad.lo.u32 %r6, %r5, 4, %r3;
  ld.shared.u32 %r7, [%r6];   // load
  st.global.u32 [%rd1], %r7;`,
      { declarations: '.shared .align 4 .b8 cells[256];' },
    );
    expect(uncaught(one)).toEqual({});
    expect(Object.keys(one.verdicts)).toHaveLength(4);
  });

  it('a wait for the reads of a bulk store is less than one for all of it', async () => {
    const judged = await judgeBody(
      `
  mov.u32 %r3, cells;
  mad.lo.u32 %r4, %r0, 4, %r3;
  st.shared.u32 [%r4], %r0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @!%p0 bra end;
  cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;     // wait
  ld.global.u32 %r5, [%rd0];
  st.global.u32 [%rd0+256], %r5;
end:`,
      { declarations: '.shared .align 16 .b8 cells[256];', output: new Uint8Array(512) },
    );
    expect(judged.base.findings).toEqual([]);
    expect(judged.verdicts).toMatchObject({
      'wait: waits for reads alone': 'found',
      'wait: waits for one group less': 'found',
    });
  });

  inTurn('waits for groups of copies are counted', async () => {
    const judged = await judgeBody(
      `
  mov.u32 %r3, cells;
  mad.lo.u32 %r3, %r0, 4, %r3;
  mad.wide.u32 %rd3, %r0, 4, %rd2;
  cp.async.ca.shared.global [%r3], [%rd3], 4;            // copy 0
  cp.async.commit_group;                                 // group 0
  cp.async.ca.shared.global [%r3+256], [%rd3+256], 4;    // copy 1
  cp.async.commit_group;                                 // group 1
  cp.async.wait_group 1;                                 // wait 0
  ld.shared.u32 %r4, [%r3];                              // load 0
  cp.async.wait_group 0;                                 // wait 1
  ld.shared.u32 %r5, [%r3+256];                          // load 1
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%rd1], %r4;                             // store
  cp.async.commit_group;                                 // empty
  cp.async.wait_all;                                     // all`,
      { declarations: '.shared .align 16 .b8 cells[512];', input },
    );
    expect(judged.base).toMatchObject({ findings: [], speaksForAllSchedules: true });
    // The last group is empty, and nothing is left to be waited for.
    expect(uncaught(judged)).toEqual({
      'empty: removed': 'redundant',
      'empty: before store': 'redundant',
      'all: removed': 'redundant',
      'all: waits for one group less': 'redundant',
    });
  });

  it('a bulk store needs its fence, its group and its wait', async () => {
    const judged = await judgeBody(
      `
  mov.u32 %r3, cells;
  mad.lo.u32 %r4, %r0, 4, %r3;
  st.shared.u32 [%r4], %r0;       // store
  fence.proxy.async.shared::cta;  // fence
  bar.sync 0;                     // meet
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 256;  // copy
  @%p0 cp.async.bulk.commit_group;           // group
  @%p0 cp.async.bulk.wait_group.read 0;      // wait
  bar.sync 0;                     // meet again
  st.shared.u32 [%r4], %r1;       // store again`,
      { declarations: '.shared .align 16 .b8 cells[256];' },
    );
    expect(judged.base).toMatchObject({ findings: [], speaksForAllSchedules: true });
    expect(uncaught(judged)).toEqual({});
    expect(Object.keys(judged.verdicts)).toHaveLength(17);
  });

  it('says what a launch does not reach, and what the machine does not have', async () => {
    const { verdicts } = await judgeBody(`
  setp.gt.u32 %p1, %r0, 64;
  griddepcontrol.wait;      // grid
  @%p1 membar.gl;           // nobody
  @!%p1 bra end;
  fence.acq_rel.gpu;        // beyond
end:
  bar.sync 0, 32;           // alone`);
    expect(verdicts).toEqual({
      'grid: removed': 'not modelled',
      'nobody: removed': 'not reached',
      'nobody: of the scope cta': 'not reached',
      'beyond: removed': 'not reached',
      'beyond: of the scope cta': 'not reached',
      'alone: removed': 'redundant',
      // One warp has no other to wait for.
      'alone: waits for one warp less': 'not reached',
    });
  });

  it('does not claim for all schedules what one shows where they may differ', async () => {
    const judged = await judgeBody(
      `
  mov.u32 %r3, 1;
  @!%p0 bra end;
  setp.eq.u32 %p1, %r1, 0;
  @!%p1 bra other;
  st.global.u32 [%rd0+64], %r3;          // data
  st.release.gpu.global.u32 [%rd0], %r3; // release
  membar.cta;                            // extra
  bra end;
other:
  ld.acquire.gpu.global.u32 %r4, [%rd0]; // acquire
  setp.eq.u32 %p1, %r4, 0;
  @%p1 bra other;
  ld.global.u32 %r5, [%rd0+64];          // take
  st.global.u32 [%rd0+128], %r5;
end:`,
      { ctas: 2 },
    );
    expect(judged.base).toMatchObject({ findings: [], speaksForAllSchedules: false });
    expect(judged.verdicts).toMatchObject({
      'release: relaxed': 'found',
      'release: of the scope cta': 'found',
      'acquire: relaxed': 'found',
      'acquire: of the scope cta': 'found',
      'extra: removed': 'not shown',
    });
    const [extra] = judged.judged.filter(({ mnemonic }) => mnemonic === 'membar.cta');
    expect(extra.reason).toContain('in no order');
  });
});
