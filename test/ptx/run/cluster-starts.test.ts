import { expect, it } from 'vitest';
import { findStarts } from '../../../src/jobs/launch/run-launch-file.js';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchBody } from './run-body.js';

const ctas = 6;

/** Each CTA stores how many have drawn a ticket before it. */
const ticket = `
  @!%p0 bra DONE;
  atom.add.relaxed.gpu.global.u32 %r4, [%rd2], 1;
  st.global.u32 [%rd1], %r4;
DONE:`;

/** The ticket of each CTA. */
async function ticketsOf(starts: string): Promise<readonly number[]> {
  const { ptx, launch } = await launchBody(ticket, { ctas });
  const options = { file: 'kernel.ptx', starts: findStarts(starts) };
  const run = runLaunch(parsePtx(ptx), launch, options);
  expect(run).toMatchObject({ findings: [], isComplete: true, clusters: ctas });
  // Another order gives other tickets, so that no run speaks for all.
  expect(run.speaksForAllSchedules).toBe(false);
  const words = new Uint32Array(run.tensors.get('out')!.slice().buffer);
  return Array.from({ length: ctas }, (_, cta) => words[64 * cta]);
}

it('clusters start in the order that is asked for', async () => {
  expect(await ticketsOf('ascending')).toEqual([0, 1, 2, 3, 4, 5]);
  expect(await ticketsOf('descending')).toEqual([5, 4, 3, 2, 1, 0]);
  const some = await Promise.all(Array.from({ length: 8 }, (_, i) => ticketsOf(`random:${i}`)));
  for (const tickets of some)
    expect([...tickets].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(new Set(some.map((tickets) => tickets.join())).size).toBeGreaterThan(4);
  expect(await ticketsOf('random:3')).toEqual(some[3]);
});

it.each(['', 'backwards', 'random', 'random:-1', 'random:4294967296', 'random:1.5'])(
  'no order is called %j',
  (text) => {
    expect(() => findStarts(text)).toThrow(
      'give ascending, descending or random:<seed>, a whole number below 2^32',
    );
  },
);
