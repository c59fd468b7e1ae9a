import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readJournal } from '../../src/campaign/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';
import { withoutTimes } from './without-times.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-campaign-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
afterEach(() => void vi.unstubAllEnvs());

const file = (name: string) => join(scratch, name);
const read = (name: string) => readFileSync(file(name), 'utf8');
const parse = <T>(name: string) => JSON.parse(read(name)) as T;

/** Small problems, so that what fails is simplified long before its time is up. */
const promises = file('promises.json');
writeFileSync(
  promises,
  JSON.stringify({
    formats: ['bf16'],
    dims: [4],
    sizes: { batch: { max: 1 }, kvHeads: { max: 1 }, queries: { max: 6 }, keys: { max: 6 } },
  }),
);

/** With this seed one law fails at its 4th problem, one at its 12th, and two hold. */
const check = [
  ...['check', '--kernel', 'fa4', '--variant', 'causal-one-more', '--promises', promises],
  ...['--property', 'determinism,query-order,masked-keys,causal-is-window', '--runs', '13'],
  ...['--seed', '2', '--save-dir', file('failures'), '--quiet'],
];
const conform = [
  ...['conform', 'cvt.rn.bf16x2.f32', 'tanh.approx.f16', 'cvt.f32.bf16'],
  ...['--threads', '1'],
];
const profile = ['profile', 'p-round', '--from', '0.75', '--to', '1', '--threads', '1'];
const commands = { check, conform, profile };
type Name = keyof typeof commands;

const writing = new Map<string, Promise<string[]>>();

/** The parts of a command, as in check-2-of-3.json, in order; they are made once. */
function writeParts(name: Name, count: number): Promise<string[]> {
  const known = writing.get(`${name} ${count}`) ?? makeParts(name, count);
  writing.set(`${name} ${count}`, known);
  return known;
}

async function makeParts(name: Name, count: number): Promise<string[]> {
  const paths: string[] = [];
  for (let index = 1; index <= count; index++) {
    const path = file(`${name}-${index}-of-${count}.json`);
    await runInProcess(...commands[name], '--shard', `${index}/${count}`, '--json', path);
    paths.push(path);
  }
  return paths;
}

beforeAll(async () => {
  for (const name of Object.keys(commands) as Name[])
    await runInProcess(...commands[name], '--json', file(`${name}.json`));
});

describe.each(Object.keys(commands) as Name[])('%s in shards', (name) => {
  // Into how many, TEST_SEED says.
  inTurn.each(sampled([2, 3, 7], 1))('is joined from %i to the bytes of one run', async (count) => {
    const parts = await writeParts(name, count);
    const merged = file(`${name}-merged.json`);
    const { status } = await runInProcess('merge', ...parts, '--json', merged);
    expect(status).toBe(name === 'check' ? 1 : 0);
    expect(withoutTimes(read(`${name}-merged.json`))).toBe(withoutTimes(read(`${name}.json`)));
    // The order of arguments does not matter: another is taken each time.
    const mixed = [...parts.slice(1).reverse(), parts[0]];
    const { stdout } = await runInProcess('merge', ...mixed, '--json', '-');
    expect(withoutTimes(stdout)).toBe(withoutTimes(read(`${name}.json`)));
  });

  inTurn('gives no part twice the work, and together all of it', async () => {
    const units = (path: string) =>
      parse<{ units: { unit: string }[] }>(path).units.map(({ unit }) => unit);
    await writeParts(name, 3);
    await runInProcess(...commands[name], '--shard', '1/1', '--json', file('whole.json'));
    const divided = [1, 2, 3].flatMap((index) => units(`${name}-${index}-of-3.json`));
    expect(new Set(divided).size).toBe(divided.length);
    // One shard sees every violation, and spares itself what others try in vain.
    for (const unit of units('whole.json')) expect(divided).toContain(unit);
  });

  inTurn('goes on from a journal that was cut off, to the same report', async () => {
    const journal = file(`${name}.jsonl`);
    const run = () => runInProcess(...commands[name], '--journal', journal, '--json', '-');
    const first = await run();
    expect(withoutTimes(first.stdout)).toBe(withoutTimes(read(`${name}.json`)));
    const whole = readFileSync(journal);
    const lines = whole.toString('utf8').split('\n');
    writeFileSync(journal, `${lines.slice(0, 3).join('\n')}\n${lines[3].slice(0, 20)}`);
    const again = await run();
    expect(again.status).toBe(first.status);
    expect(withoutTimes(again.stdout)).toBe(withoutTimes(first.stdout));
    expect(readFileSync(journal, 'utf8').startsWith(`${lines.slice(0, 3).join('\n')}\n`)).toBe(
      true,
    );
    // Nothing is left to do: the journal stays as it is.
    const complete = readFileSync(journal);
    await run();
    expect(readFileSync(journal).equals(complete)).toBe(true);
    const merged = await runInProcess('merge', journal, '--json', '-');
    expect(withoutTimes(merged.stdout)).toBe(withoutTimes(first.stdout));
  });
});

describe('flashproof merge', () => {
  let parts: string[] = [];
  beforeAll(async () => {
    parts = await writeParts('check', 3);
  });

  inTurn('joins parts with journals', async () => {
    const journal = file('second.jsonl');
    await runInProcess(...check, '--shard', '2/3', '--journal', journal);
    const { stdout } = await runInProcess('merge', parts[2], journal, parts[0], '--json', '-');
    expect(withoutTimes(stdout)).toBe(withoutTimes(read('check.json')));
  });

  it('writes a report of the published schema, and JUnit', async () => {
    const junit = file('merged.xml');
    const { stdout } = await runInProcess('merge', ...parts, '--json', '-', '--junit', junit);
    const report = JSON.parse(stdout) as CheckReport;
    await validateCheckReport(report);
    expect(report.shards).toEqual({ count: 3, included: [1, 2, 3], outOfTime: [] });
    expect(readFileSync(junit, 'utf8')).toMatch(/tests="4" failures="2" errors="0" skipped="0"/);
  });

  it('takes the status and the words of one run', async () => {
    const { status, stdout } = await runInProcess('merge', ...parts, '--quiet');
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /^FAIL: 2 of 4 properties are violated(?:, apparently by \d causes?)? \(\d+ problems in [\d.e+-]+ s, /,
    );
    expect(stdout).not.toContain('shard');
  });

  inTurn('refuses what is missing, doubled or of another request, by name', async () => {
    const [first, second, third] = parts as [string, string, string];
    expect(await refusal('merge', first, third)).toBe(
      'shard 2 is missing of 3; name every part or journal',
    );
    expect(await refusal('merge', third)).toMatch(/^shards 1, 2 are missing of 3/);
    expect(await refusal('merge', first, second, third, first)).toBe(
      `shard 1 of 3 is in ${first} and in ${first}; leave out one`,
    );
    const [half] = await writeParts('check', 2);
    expect(await refusal('merge', first, half!)).toBe(
      `${half} is shard 1 of 2, but ${first} is shard 1 of 3; merge parts of one division`,
    );
    const other = file('other.json');
    await runInProcess(...check, '--seed', '3', '--shard', '2/3', '--json', other);
    expect(await refusal('merge', first, other, third)).toBe(
      `${other} is a part of another request than ${first}: seed is 2 there and 3 here; merge parts of one`,
    );
    expect(await refusal('merge', file('check.json'))).toMatch(
      /a report of kind "check", not a part/,
    );
    expect(await refusal('merge', promises)).toMatch(/is no JSON of flashproof, not a part/);
    expect(await refusal('merge', file('none.json'))).toMatch(/cannot be read \(ENOENT\)/);
    const changed = file('changed.json');
    writeFileSync(changed, readFileSync(first, 'utf8').replace('"runs": 13', '"runs": 14'));
    expect(await refusal('merge', changed)).toMatch(/is not as flashproof wrote it/);
  });

  inTurn('refuses a journal that stopped before its end, and says how to go on', async () => {
    const journal = file('stopped.jsonl');
    await runInProcess(...check, '--shard', '1/3', '--journal', journal);
    const lines = readFileSync(journal, 'utf8').trimEnd().split('\n');
    writeFileSync(journal, `${lines.slice(0, 2).join('\n')}\n`);
    expect(await refusal('merge', journal, parts[1], parts[2])).toMatch(
      /stopped\.jsonl: shard 1 of 3 stopped \d units? before its end; run its command again/,
    );
  });

  it('has JUnit of a check only, and a plot of a profile only', async () => {
    await writeParts('conform', 2);
    const conformed = [1, 2].map((index) => file(`conform-${index}-of-2.json`));
    expect(await refusal('merge', ...conformed, '--junit', 'x.xml')).toMatch(
      /^--junit is for parts of audit and check, and these are of conform/,
    );
    expect(await refusal('merge', ...parts, '--svg', 'x.svg')).toMatch(
      /^--svg is for parts of profile, and these are of check/,
    );
    expect(await refusal('merge', ...parts, '--json', '-', '--junit', '-')).toMatch(/name a file/);
  });
});

describe('a shard whose time is up', () => {
  /** Time for one unit, which is finished once it was begun. */
  const late = [...check, '--shard', '2/3', '--seconds', '0.0001'];

  it('says so in its own report and in the merged one', async () => {
    const [first, third] = [file('check-1-of-3.json'), file('check-3-of-3.json')];
    await writeParts('check', 3);
    const part = file('late.json');
    const { stdout } = await runInProcess(...late, '--json', part);
    expect(stdout).toMatch(/; the time was up before each had its 13 in shard 2 of 3; /);
    const merged = await runInProcess('merge', first, part, third, '--json', file('late-all.json'));
    const report = parse<CheckReport>('late-all.json');
    await validateCheckReport(report);
    expect(report).toMatchObject({ outOfTime: true, shards: { count: 3, outOfTime: [2] } });
    expect(report.verdict.sentence).toMatch(
      /the time was up before each had its 13 in shard 2 of 3\.$/,
    );
    expect(merged.stdout).toContain('in shard 2 of 3.');
    expect(report.runs).toBeLessThan(parse<CheckReport>('check.json').runs);
  });

  inTurn('goes on with its journal, unit by unit, until it is done', async () => {
    const journal = file('late.jsonl');
    const sizes: number[] = [];
    for (let sitting = 0; sitting < 2; sitting++) {
      await runInProcess(...late, '--journal', journal);
      const { records, outOfTime } = readJournal(journal)!;
      expect(outOfTime).toBe(true);
      sizes.push(records.length);
    }
    expect(sizes).toEqual([1, 2]);
    await runInProcess(...check, '--shard', '2/3', '--journal', journal);
    await writeParts('check', 3);
    const others = [file('check-1-of-3.json'), file('check-3-of-3.json')];
    const { stdout } = await runInProcess('merge', ...others, journal, '--json', '-');
    expect(withoutTimes(stdout)).toBe(withoutTimes(read('check.json')));
    expect((JSON.parse(stdout) as CheckReport).shards!.outOfTime).toEqual([]);
  });
});

describe('shards by the environment', () => {
  const tables = ['conform', 'tanh.approx.f16', 'cvt.f32.bf16'];

  it('are those of the flag', async () => {
    vi.stubEnv('CI_NODE_INDEX', '2');
    vi.stubEnv('CI_NODE_TOTAL', '3');
    await runInProcess(...tables, '--shard', 'auto', '--json', file('auto.json'));
    expect(parse('auto.json')).toMatchObject({ kind: 'part', shard: { index: 2, count: 3 } });
    await runInProcess(...tables, '--shard', '1/4', '--json', file('flag.json'));
    expect(parse('flag.json')).toMatchObject({ kind: 'part', shard: { index: 1, count: 4 } });
    expect(await refusal(...tables, '--shard', 'auto', '--shard-count', '4')).toMatch(
      /^--shard-count is 4, but CI_NODE_TOTAL is 3/,
    );
  });

  it('are not taken unasked, and stderr says so', async () => {
    vi.stubEnv('CI_NODE_INDEX', '2');
    vi.stubEnv('CI_NODE_TOTAL', '3');
    const { stdout, stderr } = await runInProcess(...tables, '--json', '-');
    expect(stderr).toMatch(/^flashproof: CI_NODE_INDEX is set, by GitLab, .*--shard auto/);
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'conform', instructions: [{}, {}] });
  });
});

describe('a request in shards that cannot be', () => {
  const kernel = ['check', '--kernel', 'naive-fp32', '--runs', '1'];
  it.each([
    ['no seed', [...kernel, '--shard', '1/2'], /give all of them the same --seed/],
    ['--bail', [...kernel, '--seed', '1', '--shard', '1/2', '--bail'], /^--bail goes with neither/],
    ['--replay', [...kernel, '--journal', 'j', '--replay', 'x'], /^--replay goes with neither/],
    ['a journal on stdout', [...kernel, '--seed', '1', '--journal', '-'], /name a file/],
    ['a plot of a part', [...profile, '--shard', '1/2', '--svg', 'x.svg'], /flashproof merge$/],
    ['no such shard', [...conform, '--shard', '3/2'], /^--shard is "3\/2"/],
  ])('is refused: %s', async (_, args, message) => {
    expect(await refusal(...args)).toMatch(message);
  });

  it('takes the seed of its journal where the command names none', async () => {
    const journal = file('seed.jsonl');
    const run = () =>
      runInProcess(...kernel, '--property', 'determinism', '--journal', journal, '--json', '-');
    const seedOf = ({ stdout }: { stdout: string }) => (JSON.parse(stdout) as CheckReport).seed;
    expect(seedOf(await run())).toBe(seedOf(await run()));
  });
});
