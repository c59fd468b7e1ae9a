import { describe, expect, it } from 'vitest';
import { bindLaunch, parseLaunchFile, type LaunchTensor } from '../../../src/ptx/launch/index.js';
import { type Breakpoint, runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';

/** y[i] = the sum of the i first x (the guard ends each lane's loop), and a wide product of it in z. */
const text = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry sums(.param .u64 x, .param .u64 y, .param .u64 z) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [z];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.b32 %r3, 0;
  mov.b32 %f1, 0f00000000;
loop:
  mul.wide.u32 %rd4, %r3, 4;
  add.s64 %rd4, %rd1, %rd4;
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 ld.global.f32 %f2, [%rd4];
  @%p1 add.f32 %f1, %f1, %f2;
  add.s32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 40;
  @%p2 bra loop;
  mad.lo.s32 %r4, %r2, 64, %r1;
  mul.wide.s32 %rd5, %r4, -4;
  sub.s64 %rd6, %rd2, %rd5;
  st.global.f32 [%rd6], %f1;
  ret;
}
`;
const module = parsePtx(text, 'sums.ptx');
const lineOf = (part: string) => text.split('\n').findIndex((line) => line.includes(part)) + 1;
const x = Float32Array.from({ length: 64 }, (_, i) => 1 / (i + 3));
const tensor = (name: string, data: Float32Array): LaunchTensor => ({
  name,
  dtype: 'F32',
  elementBits: 32,
  shape: [data.length],
  bytes: new Uint8Array(data.buffer),
});
const tensors = new Map(
  [tensor('x', x), tensor('y', new Float32Array(128)), tensor('z', new Float32Array(128))].map(
    (one) => [one.name, one],
  ),
);
const launch = bindLaunch(
  await parseLaunchFile(
    JSON.stringify({
      entry: 'sums',
      grid: [2],
      block: [64],
      parameters: [{ tensor: 'x' }, { tensor: 'y' }, { tensor: 'z' }],
      outputs: ['y', 'z'],
    }),
    'sums.json',
    [],
  ),
  { module, tensors, variables: {}, fileName: 'sums.json' },
);
const run = (breaks: readonly Breakpoint[]) =>
  runLaunch(module, launch, { file: 'sums.ptx', breaks });
const thread = (line: number, number: number, cta = 0, times = 1): Breakpoint => ({
  line,
  cta,
  times,
  warp: Math.floor(number / 32),
  lane: number % 32,
});

const bitsOf = (value: number) => BigInt(new Uint32Array(Float32Array.of(value).buffer)[0]);
/** The sum of the first x in the order of the loop. */
const sumOf = (count: number) => x.slice(0, count).reduce((sum, one) => Math.fround(sum + one), 0);

describe('a breakpoint', () => {
  it('has what the registers of a thread hold before its line, each time', () => {
    const { stops } = run([thread(lineOf('add.f32'), 39, 1, 50)]);
    expect(stops.length).toBe(40);
    for (const [i, { time, registers }] of stops.entries()) {
      expect(time).toBe(i + 1);
      const values = Object.fromEntries(registers.map(({ name, bits }) => [name, bits]));
      // Thread 39 adds 39 of them.
      expect(values).toEqual({
        '%p1': [i < 39 ? 1n : 0n],
        '%f1': [bitsOf(sumOf(Math.min(i, 39)))],
        '%f2': [bitsOf(x[Math.min(i, 38)])],
      });
    }
  });

  it('keeps as many of a line as are wanted', () => {
    const line = lineOf('add.f32');
    const { stops } = run([thread(line, 1, 0, 3), thread(line, 63)]);
    expect(stops.map(({ breakpoint, time }) => [breakpoint.warp, time])).toEqual([
      ...[
        [0, 1],
        [0, 2],
        [0, 3],
        [1, 1],
      ],
    ]);
  });

  it('has the registers of all lanes of a warp', () => {
    const breakpoint = { line: lineOf('st.global'), cta: 1, warp: 1, lane: null, times: 1 };
    const [{ lanes, registers }] = run([breakpoint]).stops;
    expect(lanes).toBe(-1);
    const [address, value] = registers;
    expect(address).toMatchObject({ name: '%rd6', type: 'u64' });
    expect(address.bits.map((one) => one - address.bits[0])).toEqual(
      Array.from({ length: 32 }, (_, lane) => 4n * BigInt(lane)),
    );
    expect(value.bits).toEqual(
      Array.from({ length: 32 }, (_, i) => bitsOf(sumOf(Math.min(32 + i, 40)))),
    );
  });

  it.each([
    ['mul.wide.u32', ['u64', 'u32']],
    ['setp.lt.u32 %p1', ['pred', 'u32', 'u32']],
    ['ld.global.f32', ['pred', 'f32', 'u64']],
    ['mov.b32 %r3', ['b32']],
    ['@%p2 bra', ['pred']],
    ['mul.wide.s32', ['s64', 's32']],
  ])('says what %s takes registers for', (part, types) => {
    const [{ registers }] = run([thread(lineOf(part), 0)]).stops;
    expect(registers.map(({ type }) => type)).toEqual(types);
    expect(registers.map(({ isGuard }) => isGuard)).toEqual(
      types.map((_, i) => i === 0 && part !== 'setp.lt.u32 %p1' && types[0] === 'pred'),
    );
  });

  it('changes nothing of a run', () => {
    const plain = run([]);
    const lines = [...plain.counts.byLine.keys()];
    const broken = run(lines.map((line) => thread(line, 5, 0, 1000)));
    expect(broken.tensors).toEqual(plain.tensors);
    expect(broken.counts).toEqual(plain.counts);
    expect(broken.steps).toBe(plain.steps);
    const [warps, strands] = [4, 1];
    expect(broken.stops.length).toBe(
      [...plain.counts.byLine.values()].reduce((sum, one) => sum + one.executions, 0) /
        warps /
        strands,
    );
  });

  it.each([
    [thread(3, 0), /sums\.ptx: line 3 has no instruction .* the nearest is 6/],
    [thread(13, 0), /line 13 .* the nearest are 12 and 14/],
    [thread(14, 64), /no thread 64 to break in; a CTA has 64 threads/],
    [thread(14, 0, 2), /no CTA 2 to break in; the grid has 2/],
    [{ ...thread(14, 0), warp: 2, lane: null }, /no warp 2/],
  ])('is refused where there is nothing to read: %j', (breakpoint, message) => {
    expect(() => run([breakpoint])).toThrow(message);
  });
});
