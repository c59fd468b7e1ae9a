import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { RequestError } from '../../src/request-error.js';
import { numpyFiles, referenceSafetensors } from './reference-files.js';
import { temporaryFolder } from './temporary-folder.js';
import { sampled, scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = temporaryFolder();

/** A generator of uniform 32-bit integers (xorshift32), so that a failure can be repeated. */
function randomIntegers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** One to four random changes: a bit or byte changed, bytes cut off, put in, taken out or repeated. */
function mutated(valid: Uint8Array, random: (below: number) => number): Uint8Array {
  let bytes = Buffer.from(valid);
  for (let change = random(4); change >= 0; change--) {
    const at = random(bytes.length + 1);
    const end = Math.min(bytes.length, at + random(16));
    const next = Math.min(bytes.length, at + 1);
    const changes = [
      () => bytes.fill((bytes[at] ?? 0) ^ (1 << random(8)), at, next),
      () => bytes.fill(random(256), at, next),
      () => bytes.fill([0, 0xff, 0x39, 0x7b][random(4)], at, end),
      () => bytes.subarray(0, at),
      () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]),
      () => Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]),
      () => Buffer.concat([bytes.subarray(0, at), Buffer.from('9'), bytes.subarray(at)]),
    ];
    bytes = Buffer.from(changes[random(changes.length)]());
  }
  return bytes;
}

/** Opens and reads everything; the message when it is refused. Any other error passes through. */
async function readAll(path: string): Promise<string | null> {
  try {
    const file = await openTensorFile(path);
    try {
      for (const { name, elements, byteLength, format } of file.entries.values()) {
        if (format === null) {
          const refusal = await file.read(name).catch((error: unknown) => error);
          expect(refusal).toBeInstanceOf(RequestError);
          continue;
        }
        // The files have at most 17 KB of elements: no change of theirs can make up much more.
        expect(byteLength).toBeLessThan(1 << 20);
        const { data } = await file.read(name);
        expect(data).toHaveLength(elements);
        await file.readElements(name, Math.floor(elements / 2), Math.ceil(elements / 4));
      }
    } finally {
      await file.close();
    }
    return null;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return error.message;
  }
}

const valid: readonly (readonly [string, Uint8Array, number])[] = [
  ['safetensors', referenceSafetensors, scaled(200)],
  ['npy', numpyFiles.singleBigEndianFortran, scaled(150)],
  ['npz, stored', numpyFiles.stored, scaled(120)],
  ['npz, deflated', numpyFiles.deflated, scaled(120)],
];

describe('a damaged file is read or refused, and nothing else', () => {
  inTurn.each(valid)('%s', async (what, content, runs) => {
    // Every other run is of a fixed seed, with which some files are read: of those drawn few are.
    const sources = [randomIntegers(0x9e3779b9), randomIntegers(testSeed ^ 0x5bd1e995 || 1)];
    let refused = 0;
    for (let run = 0; run < runs; run++) {
      const bytes = mutated(content, sources[run % 2]);
      const path = folder.at(`mutated ${what}`);
      writeFileSync(path, bytes);
      const message = await readAll(path).catch((error: unknown) => {
        const sample = Buffer.from(bytes).toString('base64');
        throw new Error(`run ${run} of ${what}: ${String(error)} on ${sample}`, { cause: error });
      });
      if (message === null) continue;
      refused++;
      expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      expect(message).toContain(path);
    }
    // Both happen: changes to elements are read, changes to the structure are refused.
    expect(refused).toBeGreaterThan(runs / 4);
    expect(refused).toBeLessThan(runs);
  });

  it.each(valid)('%s cut at any length', async (what, content) => {
    const path = folder.at(`cut ${what}`);
    // The ends, and between them lengths drawn by TEST_SEED.
    const lengths = Array.from({ length: content.length }, (_, length) => length);
    for (const length of [0, 1, ...sampled(lengths, 80), content.length - 1]) {
      writeFileSync(path, content.subarray(0, length));
      expect(await readAll(path)).toContain(path);
    }
    writeFileSync(path, content);
    expect(await readAll(path)).toBeNull();
  });
});
