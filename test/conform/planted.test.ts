import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import { sampleBlocks } from '../../src/conform/block-sample.js';
import { bundledCaptures } from '../../src/conform/capture.js';
import { createBlockHasher, mismatchingBlocks } from '../../src/conform/silicon-hash.js';
import { fingerprintTargets } from '../../src/conform/targets.js';
import { fromEnvironment, scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { plantedError, type PlantedError } from './planted-tables.js';

const inTurn = turns(import.meta.url);

const trials = fromEnvironment('PLANTED_TRIALS', scaled(12));
const hash = createBlockHasher();

/** Whether the default sample of blocks shows the error. */
function isFound({ instruction, createModel }: PlantedError, sampleSeed: string): boolean {
  const target = fingerprintTargets.find((known) => known.instruction === instruction)!;
  const expected = new Uint8Array(readFileSync(join(bundledCaptures(), `hash_${target.stem}.bin`)));
  const blocks = sampleBlocks(instruction, target.chosenBlocks(), sampleSeed);
  const model = createModel();
  return blocks.some(
    (block) => mismatchingBlocks(model, { expected, blocks: [block] }, hash).length > 0,
  );
}

describe('one bit turned over in a table', () => {
  inTurn(`is found by the default sample (${trials} trials)`, { timeout: 600_000 }, () => {
    const planted = fc.sample(plantedError(), { numRuns: trials });
    const missed = planted.filter((error) => !isFound(error, '0'));
    expect(missed.map(({ instruction, description }) => `${instruction}: ${description}`)).toEqual(
      [],
    );
  });
});
