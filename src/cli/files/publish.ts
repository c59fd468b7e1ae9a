import { atomicWriteFile } from '../../io/index.js';
import { RequestError } from '../../request-error.js';

/**
 * Writes a text to a file, whole or not at all, or to standard output for `-`.
 * @throws RequestError when the file cannot be written
 */
export async function writeText(target: string, text: string): Promise<void> {
  if (target === '-') process.stdout.write(text);
  else await atomicWriteFile(target, text);
}

/** Writes a value as indented JSON, as `writeText` does. @throws RequestError when the file cannot be written */
export async function writeJson(target: string, value: object): Promise<void> {
  await writeText(target, `${JSON.stringify(value, null, 2)}\n`);
}

/** The options of a command that a list takes. */
export interface ListOptions {
  readonly json?: string | undefined;
  readonly junit?: string | undefined;
  readonly quiet?: boolean | undefined;
}

/**
 * Prints a list, and writes it as JSON where that was asked for; on standard output nothing else then.
 * @throws RequestError when the file cannot be written, and for a list as JUnit XML
 */
export async function publishList(
  text: () => string | Promise<string>,
  document: () => object | Promise<object>,
  { json, junit, quiet }: ListOptions,
): Promise<void> {
  if (junit !== undefined)
    throw new RequestError('a list is no report of tests; leave out --junit, or take --json');
  if (json !== '-' && quiet !== true) process.stdout.write(await text());
  if (json !== undefined) await writeJson(json, await document());
}
