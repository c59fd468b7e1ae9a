import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  fromUnits,
  joinParts,
  joinProfile,
  readJournal,
  readPart,
  requestFingerprint,
} from '../../src/campaign/index.js';
import { packValue, unpackValue } from '../../src/campaign/profile-campaign.js';
import { RequestError } from '../../src/request-error.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-hostile-part-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const sound = readFileSync(
  join(import.meta.dirname, '../hardening/campaigns/profile.journal'),
  'utf8',
);
const [firstLine, ...otherLines] = sound.trimEnd().split('\n');
const head = JSON.parse(firstLine!) as { readonly request: object };

function written(name: string, lines: readonly unknown[]): string {
  const path = join(scratch, name);
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(path, `${texts.join('\n')}\n`);
  return path;
}

/** A journal with another first line, whose fingerprint is right. */
function forged(name: string, changes: object): string {
  const changed = { ...head, ...changes };
  return written(name, [
    { ...changed, fingerprint: requestFingerprint(changed.request) },
    ...otherLines,
  ]);
}

describe('a part and a journal', () => {
  it.skipIf(process.platform === 'win32').each([readPart, readJournal])(
    'are refused at once where they are a pipe (%o)',
    (read) => {
      const path = join(scratch, `pipe-${read.name}`);
      expect(spawnSync('mkfifo', [path]).status).toBe(0);
      expect(() => read(path)).toThrow(/is a pipe, socket or device; save to a regular file/);
    },
  );

  it.each([readPart, readJournal])('are refused unread where they are huge (%o)', (read) => {
    const path = join(scratch, `huge-${read.name}`);
    writeFileSync(path, '');
    truncateSync(path, 2 ** 28 + 1);
    expect(() => read(path)).toThrow(/has 268435457 bytes, above the limit of 268435456/);
    expect(() => read(scratch)).toThrow(/cannot be read \(EISDIR\)/);
  });

  it('are refused by one printable line, whatever they are called and hold', () => {
    const hostile = '\u001b[2J\u009b\u2028';
    const folder = join(scratch, `x${hostile}`);
    mkdirSync(folder);
    const path = join(folder, 'part');
    for (const content of ['', '[', `{"kind":"${'x'.repeat(1e5)}"}`, `{"kind":"${hostile}"}`]) {
      writeFileSync(path, content);
      expect(() => readPart(path)).toThrow(RequestError);
      expect(() => readPart(path)).toThrow(/^[^\p{C}\p{Zl}\p{Zp}]{1,400}$/u);
    }
  });

  it('with a head that is nested deeply is refused', () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const path = written('deep', [firstLine!.replace('"shard":', `"shard":${deep},"x":`)]);
    expect(() => readPart(path)).toThrow(/nested too deeply/);
  });

  it('of very many shards names some that are missing', () => {
    const path = forged('many', { shard: { index: 2, count: Number.MAX_SAFE_INTEGER } });
    expect(() => joinParts([readPart(path)])).toThrow(
      /^shards 1, 3, 4, .*, 21 and 9007199254740970 more are missing of 9007199254740991/,
    );
  });
});

describe('what a unit found', () => {
  const merge = (path: string) => {
    const joined = joinParts([readPart(path)]);
    return fromUnits(joined, () => joinProfile(joined));
  };

  it('is merged as it was written', async () => {
    expect(await merge(written('sound', [firstLine, ...otherLines]))).toMatchObject({
      technique: 'rcp',
    });
  });

  inTurn.each([
    ['no text', 7],
    ['no base64 of DEFLATE', 'hello'],
    ['another value', packValue([1, null])],
    ['an array of more numbers than memory has', packValue({ $float64: 1e15, values: [] })],
    ['a bomb', packValue('x'.repeat(2 ** 26 + 1))],
  ])('is refused where it is %s', async (_, result) => {
    const [unit] = otherLines.map((line) => JSON.parse(line) as object);
    const path = written('damaged', [firstLine, { ...unit, result }, ...otherLines.slice(1)]);
    await expect(merge(path)).rejects.toThrow(RequestError);
    await expect(merge(path)).rejects.toThrow(/what a unit found is not as flashproof wrote it/);
  });

  inTurn('is not unpacked to more than a unit comes to', () => {
    expect(() => unpackValue(packValue('x'.repeat(2 ** 26)))).toThrow(RangeError);
    expect(() => unpackValue(packValue({ $float64: 2 ** 20 + 1, values: [] }))).toThrow(RangeError);
    expect(unpackValue(packValue(new Float64Array(2 ** 20)))).toHaveLength(2 ** 20);
  });

  it('is refused for a range that is none of numbers', async () => {
    const request = { ...head.request, range: { from: 'x'.repeat(1e4) } };
    await expect(merge(forged('range', { request }))).rejects.toThrow(/none of numbers/);
  });
});
