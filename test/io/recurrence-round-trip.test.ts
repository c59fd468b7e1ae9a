import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openTensorFile, writeRecurrence } from '../../src/io/index.js';
import { readRecurrence } from '../../src/io/tensors/index.js';
import type { RecurrentProblem } from '../../src/problem/index.js';
import { recurrence, tame } from '../oracles/recurrent/drawn-recurrences.js';
import { madeGateProblem } from '../setup/made-gates.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-recurrence-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const plain = recurrence(
  {
    family: 'simple-gla',
    lengths: [5, 2],
    isPacked: true,
    keyHeads: 1,
    groupSize: 2,
    keyDim: 4,
    valueDim: 3,
    format: 'bf16',
    isNormalised: false,
    hasState: true,
    seed: 3,
  },
  tame,
);

/** What a kernel that is asked over files is given: gates as the problem gives them, or what they are made of. */
const problems: readonly (readonly [string, RecurrentProblem])[] = [
  ['gates', plain],
  ['gates of base 2', { ...plain, gateBase: 2 }],
  ...(['gated-delta', 'kda'] as const).map(
    (family) =>
      [
        `what gates of ${family} are made of`,
        madeGateProblem({ seed: 4, family, lengths: [5, 2] }),
      ] as const,
  ),
];

it.each(problems)('a file holds %s, and is read back the same', async (_, problem) => {
  const path = join(scratch, 'problem.safetensors');
  await writeRecurrence(path, { problem });
  const file = await openTensorFile(path);
  try {
    const read = await readRecurrence(file, problem.family, {});
    for (const name of ['g', 'beta', 'gateInputs', 'strengthLogits', 'gateBase'] as const)
      expect(read.problem[name], name).toEqual(problem[name]);
  } finally {
    await file.close();
  }
});
