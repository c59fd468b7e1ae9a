import { hashTensorFile } from '../io/index.js';
import { documentHead, type DocumentHead } from './document-head.js';

/** How the JSON document of an emulation begins, with or without the machine. */
export interface EmulateDocument extends DocumentHead<'emulate'> {
  /** The file of the problem, and the SHA-256 of its bytes in lower-case hexadecimal. */
  readonly problem: { readonly path: string; readonly sha256: string };
  /** The kernel model's name. */
  readonly kernel: string;
  /** The kernel's settings by key. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/**
 * What the documents of all emulations have in common.
 * @throws RequestError when the problem's file can no longer be read
 */
export async function emulateDocument(
  path: string,
  kernel: string,
  settings: Readonly<Record<string, unknown>>,
  seconds: number,
): Promise<EmulateDocument> {
  return {
    ...documentHead('emulate', seconds),
    problem: { path, sha256: await hashTensorFile(path) },
    kernel,
    settings,
  };
}
