import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { bundledCaptures } from '../../src/conform/capture.js';
import { refusal, runInProcess } from '../cli/run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-merge-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const file = (name: string) => join(scratch, name);

interface Part {
  readonly units: readonly { readonly unit: string }[];
}

/** Writes the parts of a command in two shards. */
async function writeParts(name: string, command: readonly string[]) {
  const paths = [1, 2].map((index) => file(`${name}-${index}.json`));
  const statuses: number[] = [];
  for (const [i, path] of paths.entries()) {
    const shard = ['--shard', `${i + 1}/2`, '--json', path];
    statuses.push((await runInProcess(...command, ...shard)).status);
  }
  return { paths, statuses };
}

const promises = file('promises.json');
const few = { max: 4 };
writeFileSync(
  promises,
  JSON.stringify({ formats: ['bf16'], dims: [4], sizes: { queries: few, keys: few } }),
);

const commands = {
  check: [
    ...['check', '--kernel', 'naive-fp32', '--property', 'determinism,query-order'],
    ...['--promises', promises, '--runs', '12', '--seed', '2', '--quiet'],
  ],
  conform: ['conform', 'tanh.approx.f16', 'cvt.f32.bf16', '--threads', '1'],
  profile: ['profile', 'p-round', '--from', '0.75', '--to', '1', '--threads', '1'],
};

describe.each(Object.entries(commands))('parts of %s', (name, command) => {
  inTurn('of which one lacks exactly one unit are refused, whichever it is', async () => {
    const { paths } = await writeParts(name, command);
    const whole = await runInProcess('merge', ...paths);
    expect(whole.status).toBe(0);
    const parts = paths.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Part);
    expect(Math.min(...parts.map(({ units }) => units.length))).toBeGreaterThan(0);
    for (const [i, part] of parts.entries()) {
      const ends = [...new Set([0, part.units.length - 1])];
      for (const missing of ends) {
        const units = part.units.filter((_, at) => at !== missing);
        const short = file('short.json');
        writeFileSync(short, JSON.stringify({ ...part, units }));
        const given = paths.with(i, short);
        expect(await refusal('merge', ...given), `without ${part.units[missing].unit}`).toMatch(
          new RegExp(`short\\.json: shard ${i + 1} of 2 stopped 1 unit before its end`),
        );
      }
    }
  });
});

describe('one falsified single result', () => {
  inTurn('fails the shard that compares it, and the whole', async () => {
    const instruction = 'ex2.approx.f32';
    const folder = file('captures');
    cpSync(bundledCaptures(), folder, { recursive: true });
    const pairs = join(folder, 'pairs_ex2_approx_f32.bin');
    const bytes = readFileSync(pairs);
    // Pairs of 32 bits of input and 32 of result: the last result's lowest bit.
    bytes[bytes.length - 4] ^= 1;
    writeFileSync(pairs, bytes);
    const command = ['conform', instruction, '--threads', '1', '--captures'];
    const { paths, statuses } = await writeParts('falsified', [...command, folder]);
    const resultUnit = paths.findIndex((path) =>
      (JSON.parse(readFileSync(path, 'utf8')) as Part).units.some(({ unit }) =>
        unit.endsWith(' results'),
      ),
    );
    expect(statuses).toEqual([0, 0].with(resultUnit, 1));
    const merged = await runInProcess('merge', ...paths);
    expect(merged.status).toBe(1);
    expect(merged.stdout).toMatch(/^FAIL: 1 of 1 model differs/);
  });
});
