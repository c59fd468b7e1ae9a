import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { blockCount, type ConversionTarget } from '../formats/index.js';
import { RequestError } from '../request-error.js';

/** Where fingerprints come from; null for what the capture does not say. */
export interface CaptureSource {
  readonly folder: string;
  readonly gpu: string | null;
  /** The compute capability, as in sm_90. */
  readonly capability: string | null;
  readonly driver: string | null;
  /** The date of the capture, YYYY-MM-DD. */
  readonly captured: string | null;
}

/** The fingerprints of some instructions on one GPU. */
export interface Capture {
  readonly source: CaptureSource;
  /** The content of the fingerprint file, by instruction. */
  readonly fingerprints: ReadonlyMap<string, Uint8Array>;
}

const sourceFile = 'capture.json';
const fingerprintBytes = blockCount * 8;

/** The folder of the captures that come with the package, from the sources and from dist alike. */
export function bundledCaptures(): string {
  const captures = join('fixtures', 'silicon', 'convert');
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, captures)) && dirname(folder) !== folder)
    folder = dirname(folder);
  return join(folder, captures);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

async function readSource(folder: string): Promise<CaptureSource> {
  const path = join(folder, sourceFile);
  let parsed: unknown = {};
  try {
    parsed = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new RequestError(`${path}: is not JSON (${error.message}); correct it`);
    if (!isMissing(error)) throw unreadable(path, error);
  }
  if (typeof parsed !== 'object' || parsed === null)
    throw new RequestError(`${path}: is not a JSON object; give "gpu", "driver" and "captured"`);
  const fields = new Map<string, unknown>(Object.entries(parsed));
  const text = (name: string): string | null => {
    const value = fields.get(name) ?? null;
    if (
      value === null ||
      (typeof value === 'string' && !/[\p{C}\p{Z}]/u.test(value.replaceAll(' ', '')))
    )
      return value;
    throw new RequestError(`${path}: "${name}" is not a line of text; correct it`);
  };
  return {
    folder,
    gpu: text('gpu'),
    capability: text('capability'),
    driver: text('driver'),
    captured: text('captured'),
  };
}

function unreadable(path: string, error: unknown): RequestError {
  const reason = error instanceof Error ? error.message : String(error);
  return new RequestError(`${path}: cannot be read (${reason}); name a folder of fingerprints`);
}

async function readFingerprint(folder: string, target: ConversionTarget): Promise<Uint8Array> {
  const path = join(folder, target.fingerprint);
  const content = await readFile(path).catch((error: unknown) => {
    throw isMissing(error)
      ? new RequestError(
          `${path}: is missing; capture ${target.instruction} or name other instructions`,
        )
      : unreadable(path, error);
  });
  if (content.length !== fingerprintBytes)
    throw new RequestError(
      `${path}: has ${content.length} bytes; a fingerprint has ${fingerprintBytes}, two 32-bit words for each of ${blockCount} blocks`,
    );
  return Uint8Array.from(content);
}

/**
 * Reads the fingerprints of the targets from a folder (layout: fixtures/silicon/convert/README.md),
 * and from its capture.json, if there is one, where they come from.
 * @throws RequestError when a fingerprint is missing or has the wrong length, or capture.json is
 * malformed
 */
export async function readCapture(
  folder: string,
  targets: readonly ConversionTarget[],
): Promise<Capture> {
  const fingerprints = new Map<string, Uint8Array>();
  for (const target of targets)
    fingerprints.set(target.instruction, await readFingerprint(folder, target));
  return { source: await readSource(folder), fingerprints };
}
