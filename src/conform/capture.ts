import { existsSync } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { RequestError } from '../request-error.js';
import { blockCount, fingerprintBytes } from './silicon-hash.js';
import {
  tableTargets,
  type FingerprintTarget,
  type TableFile,
  type TableTarget,
  type Target,
} from './targets.js';

/** The origin of captured data; a member is null where the capture does not record it. */
export interface CaptureSource {
  readonly folder: string;
  readonly gpu: string | null;
  /** The compute capability, as in sm_90. */
  readonly capability: string | null;
  readonly driver: string | null;
  /** The date of the capture, YYYY-MM-DD. */
  readonly captured: string | null;
}

/** Captured inputs and results, in the order of the file. */
export interface ResultPairs {
  readonly file: string;
  readonly inputs: Uint32Array;
  readonly results: Uint32Array;
}

/** A captured fingerprint of a function of fp32 numbers. */
interface CapturedFingerprint {
  readonly target: FingerprintTarget;
  readonly fingerprint: Uint8Array;
  /** Single results, where the capture has some. */
  readonly pairs: readonly ResultPairs[];
}

/** The captured results of a function of 16 bits, for all inputs in order. */
export interface CapturedTable {
  readonly target: TableTarget;
  readonly results: Uint32Array;
}

/** The captured data of some functions on one GPU. */
export interface Capture {
  readonly source: CaptureSource;
  readonly fingerprints: readonly CapturedFingerprint[];
  readonly tables: readonly CapturedTable[];
  /** Targets without data in the folder. */
  readonly missing: readonly Target[];
}

const sourceFile = 'capture.json';
const tableInputs = 2 ** 16;
const pairBytes = 8;
/** Larger files are refused unread: 2^23 pairs, a whole binade. */
const mostPairBytes = 2 ** 23 * pairBytes;
/** Larger descriptions are refused unread. */
const mostSourceBytes = 2 ** 16;

/** The folder of the captures that come with the package, whether it runs from the sources or from dist. */
export function bundledCaptures(): string {
  const captures = join('fixtures', 'silicon', 'sm_90');
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, captures)) && dirname(folder) !== folder)
    folder = dirname(folder);
  return join(folder, captures);
}

/** Characters that act on a terminal or break a line instead of being shown. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A path as a message of one line shows it: unprintable characters are written as \u{hex}. */
function shown(path: string): string {
  return path.replace(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** The error for a path that cannot be read: by the system's code, since its message repeats the path as it is. */
function unreadable(path: string, error: unknown, mend: string): RequestError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new RequestError(`${shown(path)}: cannot be read (${code ?? message}); ${mend}`);
}

/**
 * Rejects irregular files.
 * @throws RequestError for a pipe, which would wait for a writer when opened, a socket or a device
 */
async function rejectIrregular(path: string): Promise<void> {
  const kind = await stat(path);
  if (!kind.isFile())
    throw new RequestError(
      `${shown(path)}: is a ${kind.isDirectory() ? 'folder' : 'pipe, socket or device'}, not a regular file; capture it again`,
    );
}

/** The file's bytes, decompressed if its name ends in .gz, at most `most` of them. */
async function readLimited(path: string, most: number, holds: string): Promise<Uint8Array> {
  const tooLarge = (): RequestError =>
    new RequestError(
      `${shown(path)}: is larger than ${most} bytes, the most that ${holds} may have`,
    );
  const mend = 'capture it again';
  let content: Buffer;
  try {
    await rejectIrregular(path);
    const file = await open(path);
    try {
      const { size } = await file.stat();
      if (size > most) throw tooLarge();
      content = await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    throw error instanceof RequestError ? error : unreadable(path, error, mend);
  }
  if (!path.endsWith('.gz')) return content;
  try {
    return gunzipSync(content, { maxOutputLength: most });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge();
    throw unreadable(path, error, mend);
  }
}

async function readSource(folder: string, files: ReadonlySet<string>): Promise<CaptureSource> {
  const path = join(folder, sourceFile);
  let parsed: unknown = {};
  if (files.has(sourceFile)) {
    const content = await readLimited(path, mostSourceBytes, 'a description');
    try {
      parsed = JSON.parse(new TextDecoder().decode(content));
    } catch {
      // The parser's message repeats the file, which may contain anything.
      throw new RequestError(`${shown(path)}: is not JSON; correct it`);
    }
  }
  if (typeof parsed !== 'object' || parsed === null)
    throw new RequestError(
      `${shown(path)}: is not a JSON object; give "gpu", "driver" and "captured"`,
    );
  const fields = new Map<string, unknown>(Object.entries(parsed));
  const text = (name: string): string | null => {
    const value = fields.get(name) ?? null;
    if (
      value === null ||
      (typeof value === 'string' && !/[\p{C}\p{Z}]/u.test(value.replaceAll(' ', '')))
    )
      return value;
    throw new RequestError(`${shown(path)}: "${name}" is not a line of text; correct it`);
  };
  return {
    folder,
    gpu: text('gpu'),
    capability: text('capability'),
    driver: text('driver'),
    captured: text('captured'),
  };
}

async function readFingerprint(path: string): Promise<Uint8Array> {
  const content = await readLimited(path, fingerprintBytes, 'a fingerprint');
  if (content.length !== fingerprintBytes)
    throw new RequestError(
      `${shown(path)}: has ${content.length} bytes; a fingerprint has ${fingerprintBytes}, two 32-bit words for each of ${blockCount} blocks`,
    );
  return Uint8Array.from(content);
}

async function readPairs(path: string): Promise<ResultPairs> {
  const content = await readLimited(path, mostPairBytes, 'a file of results');
  if (content.length % pairBytes !== 0)
    throw new RequestError(
      `${shown(path)}: has ${content.length} bytes, no multiple of ${pairBytes}; pairs are 32 bits of input, then 32 of result`,
    );
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  const column = (offset: number): Uint32Array =>
    Uint32Array.from({ length: content.length / pairBytes }, (_, i) =>
      view.getUint32(i * pairBytes + offset, true),
    );
  return { file: path, inputs: column(0), results: column(4) };
}

/** The files `pairs_<stem>` and `pairs_<stem>_<block>`, compressed or not. */
function pairFiles(files: ReadonlySet<string>, stem: string): string[] {
  const pattern = new RegExp(`^pairs_${stem}(_\\d+)?\\.bin(\\.gz)?$`);
  return [...files].filter((file) => pattern.test(file)).sort();
}

/** The tables of the file, in its order; it may end after any of them. */
async function readTables(path: string, file: TableFile): Promise<CapturedTable[]> {
  const targets = tableTargets.filter((target) => target.file === file);
  const all = targets.reduce((sum, { resultBytes }) => sum + resultBytes * tableInputs, 0);
  const content = await readLimited(path, all, 'the tables');
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  const tables: CapturedTable[] = [];
  let first = 0;
  for (const target of targets) {
    if (first === content.length) break;
    const { resultBytes } = target;
    const next = first + resultBytes * tableInputs;
    if (next > content.length)
      throw new RequestError(
        `${shown(path)}: has ${content.length} bytes and so ends within the table of ${target.instruction}, ${first} to ${next}; capture it again`,
      );
    const start = first;
    const results = Uint32Array.from({ length: tableInputs }, (_, i) => {
      const at = start + i * resultBytes;
      return resultBytes === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
    });
    tables.push({ target, results });
    first = next;
  }
  return tables;
}

/**
 * Reads a folder's data of the targets (its layout: fixtures/silicon/sm_90/README.md) and, from its
 * capture.json, if there is one, its origin. Nothing is read before its size is known to be right.
 * @throws RequestError, of one printable line, for a folder or file that cannot be read, is not a
 * regular file or has the wrong length, and for a malformed capture.json
 */
export async function readCapture(folder: string, targets: readonly Target[]): Promise<Capture> {
  const names = await readdir(folder).catch((error: unknown) => {
    throw unreadable(folder, error, 'name a folder of captures');
  });
  const files = new Set(names);
  const fingerprints: CapturedFingerprint[] = [];
  for (const target of targets) {
    if (target.kind !== 'fingerprint' || !files.has(`hash_${target.stem}.bin`)) continue;
    const fingerprint = await readFingerprint(join(folder, `hash_${target.stem}.bin`));
    const pairs: ResultPairs[] = [];
    for (const file of pairFiles(files, target.stem))
      pairs.push(await readPairs(join(folder, file)));
    fingerprints.push({ target, fingerprint, pairs });
  }
  const wanted = new Set<Target>(targets);
  const tables: CapturedTable[] = [];
  const tableFiles = targets.flatMap((target) => (target.kind === 'table' ? target.file : []));
  for (const file of new Set(tableFiles)) {
    const name = [`${file}.bin`, `${file}.bin.gz`].find((name) => files.has(name));
    if (name === undefined) continue;
    const all = await readTables(join(folder, name), file);
    tables.push(...all.filter(({ target }) => wanted.has(target)));
  }
  const found = new Set<Target>([...fingerprints, ...tables].map(({ target }) => target));
  return {
    source: await readSource(folder, files),
    fingerprints,
    tables,
    missing: targets.filter((target) => !found.has(target)),
  };
}
