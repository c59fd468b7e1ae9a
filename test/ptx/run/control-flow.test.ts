import { expect, test } from 'vitest';
import { runSmallKernel } from './small-kernel.js';

const registers = `.reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %rd<9>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.s32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %rd1, %r3, 4;
  ld.param.u64 %rd2, [out];
  add.s64 %rd0, %rd1, %rd2;\n`;
const laneNumbers = Array.from({ length: 32 }, (_, lane) => lane);

test('threads of several CTAs know who they are; part of a warp is no more than it is', () => {
  const memory = new Uint32Array(128).fill(7);
  const run = runSmallKernel(`${registers} st.global.u32 [%rd0], %r3; ret;`, memory, {
    threads: 40,
    ctas: 3,
  });
  expect(run.findings).toEqual([]);
  expect(run).toMatchObject({ isComplete: true, clusters: 3 });
  expect([...memory.slice(0, 121)]).toEqual([...Array.from({ length: 120 }, (_, i) => i), 7]);
  expect(run.counts.byMnemonic.get('st.global.u32')).toEqual({ executions: 6, lanes: 120 });
});

test('a loop goes round as often as each lane wants, and lanes meet behind it', () => {
  const memory = new Uint32Array(32);
  const run = runSmallKernel(
    `${registers}
  mov.u32 %r4, 0; mov.u32 %r5, 0;
again:
  add.s32 %r5, %r5, %r4;
  add.s32 %r4, %r4, 1;
  setp.le.u32 %p1, %r4, %r0;
  @%p1 bra again;
  bar.sync 0;
  st.global.u32 [%rd0], %r5;
  ret;`,
    memory,
  );
  expect(run.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map((lane) => (lane * (lane + 1)) / 2));
  expect(run.counts.byMnemonic.get('st.global.u32')).toEqual({ executions: 1, lanes: 32 });
  expect(run.counts.byMnemonic.get('bra')?.executions).toBe(32);
});

test('nested branches in a loop with a break and a continue give what a thread alone gives', () => {
  // Collatz steps of lane + 1, at most 20.
  const memory = new Uint32Array(32);
  const run = runSmallKernel(
    `${registers}
  add.s32 %r4, %r0, 1; mov.u32 %r5, 0;
loop:
  setp.eq.s32 %p1, %r4, 1;
  @%p1 bra done;
  setp.ge.s32 %p2, %r5, 20;
  @%p2 bra done;
  add.s32 %r5, %r5, 1;
  and.b32 %r6, %r4, 1;
  setp.eq.s32 %p3, %r6, 0;
  @%p3 bra even;
  mad.lo.s32 %r4, %r4, 3, 1;
  bra.uni loop;
even:
  shr.u32 %r4, %r4, 1;
  bra.uni loop;
done:
  st.global.u32 [%rd0], %r5;
  ret;`,
    memory,
  );
  const steps = (lane: number) => {
    let [value, count] = [lane + 1, 0];
    for (; value !== 1 && count < 20; count++) value = value % 2 === 0 ? value / 2 : 3 * value + 1;
    return count;
  };
  expect(run.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map(steps));
  expect(run.counts.byMnemonic.get('st.global.u32')?.executions).toBe(1);
});

test('lanes of one warp take a lock in turns: the one that holds it goes on while others poll', () => {
  const memory = new Uint32Array(8);
  const run = runSmallKernel(
    `${registers}
  mov.u32 %r4, 0;
try:
  atom.global.cas.b32 %r5, [%rd2], 0, 1;
  setp.ne.s32 %p1, %r5, 0;
  @%p1 bra next;
  ld.global.u32 %r6, [%rd2+4];
  add.s32 %r6, %r6, %r0;
  st.global.u32 [%rd2+4], %r6;
  atom.global.exch.b32 %r7, [%rd2], 0;
  mov.u32 %r4, 1;
next:
  setp.eq.s32 %p2, %r4, 0;
  @%p2 bra try;
  ret;`,
    memory,
    { threads: 64 },
  );
  expect(run.findings).toEqual([]);
  expect([...memory.slice(0, 2)]).toEqual([0, (63 * 64) / 2]);
});

test('one side of a branch waits for the other side of it', () => {
  const memory = new Uint32Array(8);
  const body = (first: string) => `${registers}
  setp.lt.u32 %p1, %r0, 16;
  ${first}
wait:
  ld.global.u32 %r4, [%rd2];
  setp.ne.s32 %p2, %r4, 16;
  @%p2 bra wait;
  bra.uni done;
go:
  atom.global.add.u32 %r5, [%rd2], 1;
  bra.uni done;
done:
  ret;`;
  for (const first of ['@%p1 bra go;', '@!%p1 bra go;']) {
    memory.fill(0);
    const run = runSmallKernel(body(first), memory);
    expect(run.findings).toEqual([]);
    expect(memory[0]).toBe(16);
  }
});

test('brx.idx goes where each lane says; an index beyond the list is found', () => {
  const memory = new Uint32Array(32);
  const body = (mask: number) => `${registers}
  and.b32 %r4, %r0, ${mask};
list: .branchtargets zero, one, two;
  brx.idx %r4, list;
zero:
  mov.u32 %r5, 100; bra.uni done;
one:
  mov.u32 %r5, 200; bra.uni done;
two:
  mov.u32 %r5, 300;
done:
  st.global.u32 [%rd0], %r5;
  ret;`;
  const right = runSmallKernel(body(2), memory);
  expect(right.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map((lane) => 100 + 100 * (lane & 2)));
  const wrong = runSmallKernel(body(3), memory.fill(0));
  expect(wrong.findings.map(({ kind }) => kind)).toEqual(Array(8).fill('trap'));
  expect([...memory]).toEqual(
    laneNumbers.map((lane) => ((lane & 3) < 3 ? 100 + 100 * (lane & 3) : 0)),
  );
});

test('a function is called by the lanes that call it, from two places, and returns early for some', () => {
  const memory = new Uint32Array(32);
  const outside = `.func (.param .b32 result) power(.param .b32 base, .param .b32 exponent)
{ .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.b32 %r1, [base]; ld.param.b32 %r2, [exponent];
  mov.u32 %r3, 1;
  st.param.b32 [result], %r3;
more:
  setp.eq.s32 %p1, %r2, 0;
  @%p1 ret;
  mul.lo.s32 %r3, %r3, %r1;
  st.param.b32 [result], %r3;
  sub.s32 %r2, %r2, 1;
  bra.uni more;
}`;
  const call = (base: string, exponent: string, result: string) => `{
  .param .b32 a; st.param.b32 [a], ${base};
  .param .b32 b; st.param.b32 [b+0], ${exponent};
  .param .b32 r;
  call.uni (r), power, (a, b);
  ld.param.b32 ${result}, [r+0]; }`;
  const run = runSmallKernel(
    `${registers}
  and.b32 %r4, %r0, 7;
  setp.lt.u32 %p1, %r0, 10;
  @%p1 bra three;
  ${call('2', '%r4', '%r5')}
  bra.uni done;
three:
  ${call('3', '%r4', '%r5')}
done:
  st.global.u32 [%rd0], %r5;
  ret;`,
    memory,
    { outside },
  );
  expect(run.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map((lane) => (lane < 10 ? 3 : 2) ** (lane & 7)));
  expect(run.counts.byMnemonic.get('st.global.u32')?.executions).toBe(1);
});

test('an aligned barrier in a part of a warp is found, with the lanes that are missing', () => {
  const memory = new Uint32Array(8);
  const run = runSmallKernel(
    `${registers}
  setp.lt.u32 %p1, %r0, 8;
  @!%p1 bra done;
  bar.sync 0;
done:
  st.global.u32 [%rd2], 1;
  ret;`,
    memory,
  );
  expect(run.findings).toHaveLength(1);
  expect(run.findings[0].kind).toBe('convergence');
  expect(run.findings[0].message).toContain('lanes 0xff execute it without lanes 0xffffff00');
});

test('lanes that have left are not missed at an aligned barrier', () => {
  const run = runSmallKernel(
    `${registers}
  setp.lt.u32 %p1, %r0, 8;
  @%p1 bra left;
  bar.sync 0;
  bar.warp.sync -1;
  setp.lt.u32 %p1, %r0, 20;
  @%p1 exit;
  bar.sync 0;
  st.global.u32 [%rd2], %r0;
  ret;
left:
  ret;`,
    new Uint32Array(8),
  );
  expect(run.findings).toEqual([]);
});

test('lanes that have parted meet at an aligned barrier or a mask, if nobody waits for them elsewhere', () => {
  const memory = new Uint32Array(32);
  const run = runSmallKernel(
    `${registers}
  setp.lt.u32 %p1, %r0, 8;
  mov.u32 %r4, 2;
  @%p1 bra meeting;
  mov.u32 %r4, 5;
  ld.global.u32 %r5, [%rd2];
  bra.uni meeting;
other:
  st.global.u32 [%rd0], %r4;
  ret;
meeting:
  setp.gt.u32 %p2, %r0, 3;
  @%p2 bra second;
  bar.warp.sync 15;
  bra.uni other;
second:
  bar.warp.sync -16;
  bra.uni other;`,
    memory,
  );
  expect(run.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map((lane) => (lane < 8 ? 2 : 5)));
  const left = runSmallKernel(
    `${registers}
  setp.lt.u32 %p1, %r0, 8;
  @%p1 bra left;
  bar.sync 0;
  st.global.u32 [%rd0], 9;
  ret;
left:
  ld.global.u32 %r5, [%rd2];
  st.global.u32 [%rd0], 8;
  ret;`,
    memory,
  );
  expect(left.findings).toEqual([]);
  expect([...memory]).toEqual(laneNumbers.map((lane) => (lane < 8 ? 8 : 9)));
});

test('a trap ends its lanes and is found; a kernel without an end is given up', () => {
  const memory = new Uint32Array(32);
  const trap = runSmallKernel(
    `${registers} setp.eq.s32 %p1, %r0, 3; @%p1 trap; st.global.u32 [%rd0], 1; ret;`,
    memory,
  );
  expect(trap.findings.map(({ kind }) => kind)).toEqual(['trap']);
  expect([...memory]).toEqual(laneNumbers.map((lane) => (lane === 3 ? 0 : 1)));
  const endless = runSmallKernel(
    `${registers} again: ld.global.u32 %r4, [%rd2]; bra.uni again;`,
    memory,
    { mostSteps: 500 },
  );
  expect(endless.isComplete).toBe(false);
  expect(endless.findings[0].message).toContain('no end');
});
