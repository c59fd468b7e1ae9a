import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { bundledCaptures, readCapture } from '../../src/conform/capture.js';
import { fingerprintTargets, tableTargets, targets } from '../../src/conform/targets.js';
import { RequestError } from '../../src/request-error.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-capture-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A folder with these files. */
function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = mkdtempSync(join(scratch, 'capture-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const [exp2] = fingerprintTargets;
const hash = { [`hash_${exp2!.stem}.bin`]: new Uint8Array(32768) };
const tableBytes = 2 * 65536;

describe('the bundled captures', () => {
  it('have everything, and say where it comes from', async () => {
    const { source, fingerprints, tables, missing } = await readCapture(bundledCaptures(), targets);
    expect(source).toMatchObject({ gpu: 'NVIDIA H200', capability: 'sm_90' });
    expect(source.captured).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(missing).toEqual([]);
    expect(fingerprints).toHaveLength(fingerprintTargets.length);
    expect(tables).toHaveLength(tableTargets.length);
  });
});

describe('captures', () => {
  it('may hold some of the functions', async () => {
    const tables = new Uint8Array(3 * tableBytes);
    const folder = folderOf({ ...hash, 'half_tables.bin': tables });
    const { source, fingerprints, tables: read, missing } = await readCapture(folder, targets);
    expect(source).toMatchObject({ gpu: null, capability: null, driver: null, captured: null });
    expect(fingerprints.map(({ target }) => target)).toEqual([exp2]);
    expect(read.map(({ target }) => target)).toEqual(tableTargets.slice(0, 3));
    expect(missing).toEqual([...fingerprintTargets.slice(1), ...tableTargets.slice(3)]);
  });

  it('may hold single results, compressed or not', async () => {
    const words = Uint8Array.from([1, 0, 0, 0x80, 2, 0, 0, 0xff]);
    const folder = folderOf({
      ...hash,
      [`pairs_${exp2!.stem}.bin`]: words,
      [`pairs_${exp2!.stem}_17.bin.gz`]: gzipSync(words),
      'pairs_ex2_approx_f32.bin': new Uint8Array(3),
    });
    const { fingerprints } = await readCapture(folder, [exp2!]);
    expect(fingerprints[0].pairs).toHaveLength(2);
    for (const { inputs, results } of fingerprints[0].pairs)
      expect([...inputs, ...results]).toEqual([0x80000001, 0xff000002]);
  });

  it.each([
    ['no JSON', '{', /capture\.json: is not JSON/],
    ['a number', '3', /capture\.json: is not a JSON object/],
    ['a GPU that is no text', '{"gpu": 7}', /"gpu" is not a line of text/],
    ['control characters', '{"driver": "\\u001b[2J"}', /"driver" is not a line of text/],
    ['a book', ' '.repeat(70000), /capture\.json: is larger than 65536 bytes/],
  ])('with %s in capture.json are refused', async (_, content, message) => {
    const reading = readCapture(folderOf({ ...hash, 'capture.json': content }), [exp2!]);
    await expect(reading).rejects.toThrow(RequestError);
    await expect(reading).rejects.toThrow(message);
  });

  const table = 'half_tables.bin';
  it.each([
    ['a short fingerprint', { [`hash_${exp2!.stem}.bin`]: new Uint8Array(32760) }, /has 32760 byt/],
    [
      'a long fingerprint',
      { [`hash_${exp2!.stem}.bin`]: new Uint8Array(32769) },
      /larger than 327/,
    ],
    ['half a pair', { ...hash, [`pairs_${exp2!.stem}.bin`]: new Uint8Array(12) }, /multiple of 8/],
    [
      'a cut table',
      { [table]: new Uint8Array(tableBytes + 6) },
      /ends within the table of ex2\.ap/,
    ],
    ['what is not gzip', { [`${table}.gz`]: 'text' }, /half_tables\.bin\.gz: cannot be read/],
    ['too much in gzip', { [`${table}.gz`]: gzipSync(new Uint8Array(2 ** 24)) }, /larger than/],
  ])('with %s are refused', async (_, files: Record<string, string | Uint8Array>, message) => {
    const reading = readCapture(folderOf(files), targets);
    await expect(reading).rejects.toThrow(RequestError);
    await expect(reading).rejects.toThrow(message);
  });

  it('that are no folder are refused', async () => {
    const reading = readCapture(join(scratch, 'nowhere'), targets);
    await expect(reading).rejects.toThrow(/nowhere: cannot be read .*name a folder of captures/);
  });
});
