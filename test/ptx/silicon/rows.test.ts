import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { laneInstructions } from '../instructions/lane/lane-instructions.js';
import { fromEnvironment, testSeed } from '../../setup/effort.js';
import { fingerprints, modelResults } from './row-kernels.js';
import { rowKey } from './sweep.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Fingerprints of what an H200 gave, by row: fixtures/ptx/README.md. */
const captured = JSON.parse(
  gunzipSync(
    readFileSync(new URL('../../../fixtures/ptx/rows.json.gz', import.meta.url)),
  ).toString(),
) as { readonly rows: Readonly<Record<string, string>> };

/** Instructions captured elsewhere: fixtures/silicon/sm_90/high-words.json. */
const onHighWords = ['rcp.approx.ftz.f64', 'rsqrt.approx.ftz.f64'];

const rows = laneInstructions();
const ofSilicon = rows.filter((row) => rowKey(row) in captured.rows);
/** One row in so many is compared in a default run, which ones by the seed; LONG=1 compares all. */
const every = fromEnvironment('LONG', 0) === 1 ? 1 : 12;

function marksOf(row: (typeof rows)[number]): string {
  return Buffer.from(fingerprints(modelResults(row)).buffer).toString('base64');
}

describe('lane instructions', () => {
  // Twenty seconds of a core, which a busy machine makes minutes of.
  inTurn('give what an H200 gave for 4,096 tuples of operands', { timeout: 600_000 }, () => {
    const tried = ofSilicon.filter((_, i) => (i + testSeed) % every === 0);
    expect(tried.length).toBeGreaterThan(0);
    const wrong = tried.filter((row) => marksOf(row) !== captured.rows[rowKey(row)]);
    expect(wrong.map(rowKey)).toEqual([]);
  });

  it('are compared if they are captured: no captured row is gone from the table', () => {
    const known = new Set(rows.map(rowKey));
    expect(Object.keys(captured.rows).filter((key) => !known.has(key))).toEqual([]);
  });

  it('say silicon only where an H200 has said so', () => {
    const claimed = rows.filter(
      ({ evidence, name }) => evidence === 'silicon' && !onHighWords.includes(name),
    );
    expect(claimed.map(rowKey).filter((key) => !(key in captured.rows))).toEqual([]);
  });

  it('would be seen to differ: one bit of one result changes a fingerprint', () => {
    const results = modelResults(ofSilicon[testSeed % ofSilicon.length]);
    const before = fingerprints(results);
    results[testSeed % results.length] ^= 1n;
    expect([...fingerprints(results)]).not.toEqual([...before]);
  });
});
