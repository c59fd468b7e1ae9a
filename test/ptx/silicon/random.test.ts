import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { laneInstructions } from '../instructions/lane/lane-instructions.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { markOf, randomModule } from './random-kernel.js';
import { runRandomKernel } from './run-random.js';

const fixture = (name: string) =>
  readFileSync(new URL(`../../../fixtures/ptx/${name}`, import.meta.url));

/** The first of the seeds whose kernels ran on an H200. */
const firstSeed = 400_001;
/** By seed, the mark of what the kernel wrote there; 0 where ptxas made something else of it than is written (see below). */
const marks = new Uint32Array(new Uint8Array(fixture('random-marks.bin')).buffer);

const keyOf = ({ name, destinations, sources }: LaneInstruction): string =>
  [name, destinations.join(' '), sources.join(' ')].join(' | ');

/** The rows that the kernels were drawn from, in their order. */
function rowsOfCapture(): readonly LaneInstruction[] {
  const known = new Map(laneInstructions().map((row) => [keyOf(row), row]));
  const keys = JSON.parse(gunzipSync(fixture('random-rows.json.gz')).toString()) as string[];
  return keys.map((key) => known.get(key)!);
}

// They ran by fixtures/capture/ptx/random_kernels.py, assembled by ptxas 13.0 with --fmad=false. What ptxas is known to leave open is not
// among them (assembler-choices.ts); of 104,000 kernels 16 differ still, shortened to guarded mad.hi of 16 bits, guarded szext,
// and instructions whose registers live across a subroutine of a division or a root.
it('random kernels of lane and warp instructions write what an H200 wrote', () => {
  expect(marks.filter((mark) => mark === 0)).toHaveLength(16);
  const rows = rowsOfCapture();
  const seeds = Array.from(
    { length: scaled(10) },
    (_, i) => (testSeed * 997 + i * 2741) % marks.length,
  )
    .filter((at) => marks[at] !== 0)
    .map((at) => firstSeed + at);
  const module = parsePtx(randomModule(seeds, rows));
  for (const seed of seeds)
    expect(markOf(runRandomKernel(module, seed)), `kernel ${seed}`).toBe(marks[seed - firstSeed]);
});
