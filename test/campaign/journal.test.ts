import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openJournal, readJournal, readPart } from '../../src/campaign/index.js';
import { readJournalLines } from '../../src/campaign/journal.js';
import { RequestError } from '../../src/request-error.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-journal-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const request = { command: 'check', version: '1.2.3', seed: 7, kernel: { model: 'fa4' } } as const;
const head = { request, shard: { index: 2, count: 3 } };
const units = ['determinism 1-5', 'größe 6-10', 'within-bound 1-5'];

function written(name: string): string {
  const path = join(scratch, name);
  const log = openJournal(path, head);
  for (const [i, unit] of units.entries()) log.add(unit, { found: i, text: 'a\nb – é' });
  log.close();
  return path;
}

const whole = readFileSync(written('whole.jsonl'));
/** Where each line ends, its newline included. */
const ends = [...whole.keys()].filter((i) => whole[i] === 0x0a).map((i) => i + 1);

describe('a journal', () => {
  it('has a line for the request and one for each unit', () => {
    const lines = whole.toString('utf8').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { kind: 'flashproof-journal', schemaVersion: 1, ...head },
      ...units.map((unit, found) => ({ unit, result: { found } })),
    ]);
  });

  it('cut off anywhere has the units of its whole lines, and is completed to the same', () => {
    const path = join(scratch, 'torn.jsonl');
    const unitsBefore = (length: number) =>
      units.slice(0, Math.max(ends.filter((end) => end <= length).length - 1, 0));
    for (let length = 0; length <= whole.length; length++) {
      const content = readJournalLines(path, whole.subarray(0, length));
      expect((content?.records ?? []).map(({ unit }) => unit)).toEqual(unitsBefore(length));
    }
    // At and beside the ends of lines, which is where an off-by-one would be.
    const near = ends.flatMap((end) => [end - 40, end - 1, end, Math.min(end + 1, whole.length)]);
    for (const length of [0, 1, ...near]) {
      writeFileSync(path, whole.subarray(0, length));
      const log = openJournal(path, head);
      expect([...log.records.keys()]).toEqual(unitsBefore(length));
      // What was cut off is gone before anything is written, however long it was.
      expect(readFileSync(path).at(-1)).toBe(0x0a);
      for (const [i, unit] of units.entries())
        if (!log.records.has(unit)) log.add(unit, { found: i, text: 'a\nb – é' });
      log.close();
      const again = readJournal(path)!;
      expect(again.records.map(({ unit, result }) => ({ unit, result }))).toEqual(
        units.map((unit, found) => ({ unit, result: { found, text: 'a\nb – é' } })),
      );
      expect(again.wholeBytes).toBe(readFileSync(path).length);
    }
  });

  it('says that the time was up until work goes on', () => {
    const path = written('late.jsonl');
    const log = openJournal(path, head);
    log.noteOutOfTime();
    expect(readPart(path).outOfTime).toBe(true);
    log.add('another', 1);
    log.close();
    expect(readPart(path).outOfTime).toBe(false);
    expect(readPart(path).records.size).toBe(units.length + 1);
  });

  it('is refused for another request, with all that differs', () => {
    const path = written('other.jsonl');
    const refused = (other: object) => () =>
      openJournal(path, { ...head, ...other } as typeof head);
    expect(refused({})).not.toThrow();
    expect(refused({ shard: { index: 1, count: 3 } })).toThrow(/shard.index is 2 there and 1 here/);
    const changed = { ...request, version: '1.2.4', kernel: { model: 'fa4', set: 'x' } };
    expect(refused({ request: changed })).toThrow(
      /another request: version is "1.2.3" there and "1.2.4" here, kernel.set is missing there and "x" here; repeat/,
    );
    const { command, version, kernel } = request;
    expect(refused({ request: { command, version, kernel } })).toThrow(
      /seed is 7 there and missing here/,
    );
    expect(readJournal(path)!.records).toHaveLength(units.length);
  });

  it('of an equal request is taken, whatever the order of its members', () => {
    const path = written('order.jsonl');
    const { command, version, seed, kernel } = request;
    const log = openJournal(path, {
      ...head,
      request: { kernel, seed, version, command } as never,
    });
    expect(log.records.size).toBe(units.length);
    log.close();
  });

  it('that is damaged before its end is refused by the line', () => {
    const path = join(scratch, 'damaged.jsonl');
    for (const [i, end] of ends.entries()) {
      const bytes = Buffer.from(whole);
      bytes[end - 2] = 0;
      writeFileSync(path, bytes);
      expect(() => openJournal(path, head)).toThrow(RequestError);
      expect(() => openJournal(path, head)).toThrow(`line ${i + 1} is damaged`);
    }
  });

  it.each([
    ['something else', 'hello\n', /is no journal of flashproof/],
    ['a text without newline', 'hello', /is no journal of flashproof/],
    ['a line of JSON without newline', '{"a":1}', /is no journal of flashproof/],
    ['a report', '{"kind":"check"}\n', /is no journal of flashproof/],
    ['a version to come', '{"kind":"flashproof-journal","schemaVersion":2}\n', /schemaVersion 2/],
    [
      'a changed request',
      whole.toString('utf8').replace('"seed":7', '"seed":8'),
      /is not as flashproof wrote it/,
    ],
    [
      'a unit twice',
      whole.toString('utf8') + whole.toString('utf8', ends[0], ends[1]),
      /holds unit determinism 1-5 twice/,
    ],
    ['a line of no unit', `${whole.toString('utf8')}{"unit":1}\n`, /line 5 is no unit/],
  ])('is not %s', (_, text, message) => {
    const path = join(scratch, 'wrong.jsonl');
    writeFileSync(path, text);
    expect(() => openJournal(path, head)).toThrow(RequestError);
    expect(() => openJournal(path, head)).toThrow(message);
    // What is refused is left as it was.
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('says so when it cannot be written', () => {
    expect(() => openJournal(join(scratch, 'no', 'folder.jsonl'), head)).toThrow(
      /cannot be written \(ENOENT/,
    );
    expect(() => openJournal(scratch, head)).toThrow(/cannot be read \(EISDIR/);
  });
});
