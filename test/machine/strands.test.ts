import { expect, test } from 'vitest';
import {
  adversarialSchedulers,
  type Instruction,
  type WarpProgram,
} from '../../src/machine/index.js';
import { arrive, data, kindsOf, messagesOf, runProgram, wait, words } from './launch.js';

const strand = (name: string, instructions: readonly Instruction[]) => ({
  name,
  program: (function* (): WarpProgram {
    yield* instructions;
  })(),
});
const diverge = (...strands: readonly (readonly Instruction[])[]): Instruction => ({
  op: 'diverge',
  strands: strands.map((instructions, i) => strand(`side ${i}`, instructions)),
});
const store = words('st.shared', data, undefined, 'stores');
const read = words('ld.shared', data, undefined, 'reads');

test('a strand that waits does not keep another from arriving, whichever comes first', () => {
  for (const scheduler of adversarialSchedulers(1)) {
    const run = runProgram(
      {
        barriers: { ready: 1 },
        warps: [
          function* () {
            yield diverge([wait(0, 0), read], [store, arrive(0)]);
            yield read;
          },
        ],
      },
      { scheduler },
    );
    expect(messagesOf(run), scheduler.name).toEqual([]);
    expect(run.isComplete).toBe(true);
  }
});

test('strands are in no order; the warp knows what they did once they have come back', () => {
  const race = runProgram({
    warps: [
      function* () {
        yield diverge([store], [store]);
      },
    ],
  });
  expect(kindsOf(race)).toEqual(['race']);
  expect(race.findings[0].accesses.map(({ who }) => who)).toEqual([
    'CTA 0 warp 0 (side 0)',
    'CTA 0 warp 0 (side 1)',
  ]);
  const ordered = runProgram({
    warps: [
      function* () {
        yield store;
        yield read;
        yield diverge([read], [read]);
        yield store;
        yield read;
      },
    ],
  });
  expect(messagesOf(ordered)).toEqual([]);
});

test('strands that wait for nobody are named in the deadlock, and one may be empty', () => {
  const run = runProgram({
    barriers: { never: 1 },
    warps: [
      function* () {
        yield diverge([wait(0, 0, 'waits in vain')], []);
      },
    ],
  });
  expect(kindsOf(run)).toEqual(['deadlock']);
  expect(run.findings[0].message).toContain('CTA 0 warp 0 (side 0) at "waits in vain"');
});
