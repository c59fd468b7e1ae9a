import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { RequestError } from '../../src/request-error.js';

/** A folder to write test files into; `write` returns the path of what it wrote. */
export interface TemporaryFolder {
  readonly path: string;
  readonly at: (name: string) => string;
  readonly write: (name: string, content: Uint8Array | string) => string;
}

/** A fresh folder that is removed after the tests of the calling file. */
export function temporaryFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), 'flashproof-io-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  const at = (name: string): string => join(path, name);
  return {
    path,
    at,
    write: (name, content) => {
      writeFileSync(at(name), content);
      return at(name);
    },
  };
}

/** Expects the action to fail with a RequestError of one line that holds all the parts. */
export async function expectRefusal(
  action: () => Promise<unknown>,
  ...parts: (string | RegExp)[]
): Promise<void> {
  const error = await action().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RequestError);
  const { message } = error as RequestError;
  // No control characters: the message is one line and cannot rewrite a terminal.
  expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
  expect(message.length).toBeLessThan(1000);
  for (const part of parts) {
    if (typeof part === 'string') expect(message).toContain(part);
    else expect(message).toMatch(part);
  }
}
