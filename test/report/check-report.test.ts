import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laws, resolvePromises, type LawResult } from '../../properties/index.js';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { createCheckReport, type CheckReport } from '../../src/report/json/check/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import { quoteShellCommand, wrapShellCommand } from '../../src/report/layout/shell-words.js';
import { renderCheck, renderCheckAnnotations } from '../../src/report/text/check.js';
import { renderCheckJunit } from '../../src/report/junit/check-junit.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const one: Tensor = {
  format: 'bf16',
  shape: [1, 1, 1, 1],
  data: encodeFromFloat64(formats.bf16, Float64Array.of(1)),
};
const problem: Problem = {
  q: one,
  k: one,
  v: one,
  scale: 1,
  causal: true,
  window: { left: 2, right: -1 },
  softcap: 30,
};

const sizes = { batch: 2, heads: 6, groupSize: 3, queries: 129, keys: 771, qkDim: 32, vDim: 16 };

const held: LawResult = {
  id: 'determinism',
  strength: 'bits',
  status: 'holds',
  runs: 7,
  tried: 5,
  unsupported: 2,
  sizes,
  widened: [],
  seconds: 0.5,
  skipped: null,
  failure: null,
};

function violated(statement: string): LawResult {
  const failure = {
    lawCase: { problem, choice: 0 },
    statement,
    runs: [],
    shrinks: 3,
    cause: 'the mask is off',
    hint: 'A kernel with scores in bf16 would pass; say --premise scores=bf16',
    kind: { id: 'diagnosis mask', title: 'the mask is off', equivalents: [] },
    regime: 'normal' as const,
    round: 2,
    runsUntil: 5,
    secondsUntil: 0.25,
  };
  return { ...held, id: 'within-bound', strength: 'bound', status: 'violated', failure };
}

function reportOf(
  results: readonly LawResult[],
  execution: string | null = null,
  strict = false,
): CheckReport {
  const notes = ['outputs are wide'];
  const summary = { seed: 11, runs: 14, seconds: 1.5, outOfTime: false, notes };
  return createCheckReport(
    { ...summary, laws: results },
    {
      version: '1.2.3',
      kernel: { command: 'python k.py', model: null, settings: {}, judgedAs: null },
      promises: resolvePromises({ sizes: { queries: { max: 9 } } }),
      laws,
      runsPerProperty: 7,
      saved: new Map([
        [
          'within-bound',
          {
            values: ['q: bf16 [1, 1, 1, 1] = [1]'],
            saved: "a b/it's.safetensors",
            replay: ['flashproof', 'check', '--exec', 'python k.py', "it's"],
          },
        ],
      ]),
      execution,
      strict,
      created: new Date('2026-02-03T04:05:06.789Z'),
    },
  );
}

const nothing = { runs: 0, tried: 0, unsupported: 0, sizes: null };
const skipped: LawResult = {
  ...held,
  ...nothing,
  id: 'query-order',
  status: 'skipped',
  skipped: 'not promised',
};
const untried: LawResult = {
  ...held,
  ...nothing,
  id: 'padding',
  status: 'untried',
  skipped: 'the check ended',
};
const hostile = 'O <is> "1" & not \'2\'\r\n100 % off\u0000, ::error::';
const reports = {
  pass: reportOf([held, skipped]),
  fail: reportOf([violated(hostile), held, skipped, untried]),
  gap: reportOf([held, untried]),
  nothing: reportOf([skipped, untried]),
  broken: reportOf([untried], 'the process ended'),
};

type Json = Readonly<Record<string, unknown>>;

/** Every described part of a schema, by its place. */
function* parts(part: Json, path = ''): Generator<readonly [string, Json]> {
  yield [path, part];
  for (const [key, value] of Object.entries((part['properties'] ?? {}) as Json))
    yield* parts(value as Json, `${path}/${key}`);
  if (typeof part['items'] === 'object') yield* parts(part['items'] as Json, `${path}/[]`);
  for (const [index, form] of ((part['anyOf'] ?? []) as Json[]).entries())
    yield* parts(form, `${path}/${index}`);
}

const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/check.schema.json', import.meta.url), 'utf8'),
) as Json;

describe('the report of a check', () => {
  it.each(Object.entries(reports))('fits the schema: %s', async (_, report) => {
    await validateCheckReport(report);
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  });

  it('has a schema that describes every part and closes every object', () => {
    for (const [path, part] of parts(schema)) {
      if ('$ref' in part) continue;
      expect(part['title'], path).toMatch(/\S/);
      expect(part['description'], path).toMatch(/\.$/);
      if (part['properties'] === undefined) continue;
      expect(part['additionalProperties'], path).toBe(false);
      // Only a check that was divided has shards, only one of linear attention a contract, and only a kernel of attention
      // with gradients says something of them.
      const ofGradients = path === '/promises/0' ? ['gradients', 'deterministic'] : [];
      const optional = ['shards', 'contract', ...ofGradients];
      const named = Object.keys(part['properties'] as Json).filter(
        (name) => !optional.includes(name),
      );
      if (!['/promises/0/sizes', '/promises/1/declared'].includes(path))
        expect(part['required'], path).toEqual(named);
    }
  });

  it('is rejected where it contradicts itself', async () => {
    const { fail, pass, broken } = reports;
    const verdict = { ...fail.verdict, pass: true };
    await expect(validateCheckReport({ ...fail, verdict })).rejects.toThrow(/violation/);
    await expect(validateCheckReport({ ...broken, verdict })).rejects.toThrow(/execution/);
    const boast = { ...reports.nothing.verdict, pass: true };
    await expect(validateCheckReport({ ...reports.nothing, verdict: boast })).rejects.toThrow();
    for (const result of ['violated', 'skipped', 'untried'] as const) {
      const properties = [{ ...pass.properties[0], result }];
      await expect(validateCheckReport({ ...pass, properties })).rejects.toThrow(/properties\/0/);
    }
    for (const key of Object.keys(pass))
      await expect(validateCheckReport({ ...pass, [key]: undefined })).rejects.toThrow();
  });

  it('counts only what was tried in its verdict', () => {
    expect(reports.pass.verdict.sentence).toBe(
      'PASS: 1 property holds (5 problems in 1.5 s, seed 11).',
    );
    expect(reports.fail.verdict.sentence).toMatch(
      /^FAIL: 1 of 2 properties is violated, 1 was never tried \(10 problems /,
    );
    expect(reports.broken.verdict).toEqual({ pass: false, sentence: 'FAIL: the process ended.' });
    const results = reports.fail.properties.map(({ result }) => result);
    expect(results).toEqual(['violated', 'holds', 'skipped', 'untried']);
  });

  it('tells of gaps, fails for them where it is strict, and is no pass of nothing', () => {
    expect(reports.gap.verdict).toEqual({
      pass: true,
      sentence: 'PASS: 1 property holds, 1 was never tried (5 problems in 1.5 s, seed 11).',
    });
    const { pass, sentence } = reportOf([held, untried], null, true).verdict;
    expect(pass).toBe(false);
    expect(sentence).toMatch(/^FAIL: 1 property holds, 1 was never tried, which --strict does /);
    expect(reportOf([held, skipped], null, true).verdict.pass).toBe(true);
    expect(reports.nothing.verdict).toEqual({
      pass: false,
      sentence: 'NOTHING TRIED: no property was tried on any problem.',
    });
  });
});

describe('a check as text', () => {
  it.each([60, 80, 100])('keeps to %d columns, and to characters that only show', (columns) => {
    for (const report of Object.values(reports)) {
      const text = renderCheck(report, { columns });
      for (const line of text.split('\n')) {
        expect(line.length).toBeLessThanOrEqual(columns);
        expect(line).not.toMatch(/\p{Cc}/u);
      }
    }
  });

  it('says what is wrong, on what, where it is saved and how to see it again', () => {
    const text = renderCheck(reports.fail);
    for (const part of [
      'within-bound VIOLATED 5 of 7 bound 129×771 d32/16 h6/3 b2',
      '1 head, 1 queries × 1 keys, dim 1, bf16, scale 1 (1/√1), causal, window 2,-1',
      'q: bf16 [1, 1, 1, 1] = [1]',
      'at run 5 (0.25 s), problem 2 of this property; simplified 3 times',
      "a b/it's.safetensors",
      `flashproof check --exec 'python k.py' 'it'\\''s'`,
      'determinism holds 5 of 7 bits 129×771 d32/16 h6/3 b2',
      'Never tried padding the check ended',
      'Note outputs are wide.',
      'Skipped query-order not promised',
    ])
      expect(text.replaceAll(/\s+/g, ' ')).toContain(part);
    expect(renderCheck(reports.pass)).not.toContain('Replay');
  });
});

describe('a check as JUnit and as annotations', () => {
  it('has a case per property and one of the command, each with one outcome', () => {
    const xml = renderCheckJunit(reports.fail);
    expect(xml).toMatch(
      /<testsuites name="flashproof" tests="5" failures="1" errors="0" skipped="2"/,
    );
    expect(xml.match(/<testcase /g)).toHaveLength(5);
    expect(xml.match(/<failure /g)).toHaveLength(1);
    expect(xml).toContain(
      'O &lt;is&gt; &quot;1&quot; &amp; not &apos;2&apos;\\u{d}\\u{a}100 % off',
    );
    expect(xml).not.toContain('\u0000');
    expect(renderCheckJunit(reports.broken)).toMatch(
      /tests="2" failures="1" errors="0" skipped="1"[^]*<testcase name="execution"[^>]*>\s*<failure/,
    );
    expect(xml).toContain('<skipped message="never tried: the check ended"/>');
    expect(xml).toMatch(/<system-out>\s*tried on 5 problems up to .*: 129×771 d32\/16 h6\/3 b2/);
  });

  it('annotates each failure on one line, and nothing else', () => {
    const lines = renderCheckAnnotations(reports.fail).split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[2]).toBe('::warning title=flashproof::outputs are wide.');
    expect(lines[1]).toBe('::warning title=flashproof padding::never tried: the check ended.');
    expect(lines[0]).toMatch(/^::error title=flashproof within-bound::O <is> "1" /);
    expect(lines[0]).toContain('%0D%0A100 %25 off');
    expect(renderCheckAnnotations({ ...reports.pass, notes: [] })).toBe('');
    expect(renderCheckAnnotations({ ...reports.broken, notes: [] })).toBe(
      '::error title=flashproof execution::the process ended.\n',
    );
  });
});

/** What a POSIX shell makes of a command line whose first word is replaced by printf. */
function readByShell(command: string): string[] {
  const { stdout } = spawnSync('sh', ['-c', `printf '%s\\0' ${command}`], { encoding: 'utf8' });
  return stdout.split('\0').slice(0, -1);
}

describe.skipIf(process.platform === 'win32')('words for a shell', () => {
  inTurn('are read back as they were, on one line or wrapped', () => {
    const word = fc.string({ unit: 'grapheme', maxLength: 12 }).map((s) => s.replaceAll('\0', ''));
    const awkward = fc.constantFrom(
      '',
      "'",
      '"',
      '$HOME',
      '`ls`',
      '\\',
      'a b',
      '*',
      '#',
      '~',
      '\n',
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(word, awkward), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 10, max: 40 }),
        (words, width) => {
          expect(readByShell(quoteShellCommand(words))).toEqual(words);
          expect(readByShell(wrapShellCommand(words, width).join('\n'))).toEqual(words);
        },
      ),
      { numRuns: 60 },
    );
  });
});
