import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { builtDist } from '../setup/built-dist.js';
import { hostileCommandLine, runCommandLine } from './command-lines.js';
import { soundSafetensors } from './hostile-safetensors.js';
import { seededRandom } from './random.js';
import { testSeed } from '../setup/effort.js';

/** How many command lines are run: COMMANDS=500 makes a campaign of it. */
const count = Number(process.env['COMMANDS'] ?? 8);
const seed = testSeed;

describe('a command line of hostile values', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-commands-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  let main = process.env['FLASHPROOF_MAIN'] ?? '';
  beforeAll(async () => {
    if (main === '') main = join(await builtDist(), 'src', 'cli', 'main.js');
  });

  it(
    `ends with status 0, 1 or 2, and on 2 with one line (${count} of seed ${seed})`,
    { timeout: count * 25_000 },
    async () => {
      const program = createProgram(() => undefined);
      const found: string[] = [];
      const statuses = new Map<number | null, number>();
      for (let index = 0; index < count; index++) {
        const words = hostileCommandLine(program, seededRandom(seed, index));
        const folder = join(scratch, 'run');
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder);
        writeFileSync(join(folder, 'problem.safetensors'), soundSafetensors);
        const { status, faults } = await runCommandLine(main, words, folder, 20_000);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        for (const fault of faults) found.push(`${index}: ${JSON.stringify(words)}: ${fault}`);
        if (count > 100 && found.length > 0) console.log(found.at(-1));
      }
      if (count > 100) console.log(JSON.stringify([...statuses]));
      expect(found).toEqual([]);
      // Most are refused; were all to end in one way, the lines would show nothing. Of a few lines few may be.
      if (count > 100) expect(statuses.get(2)).toBeGreaterThan(count / 4);
    },
  );
});
