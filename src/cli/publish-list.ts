import { RequestError } from '../request-error.js';
import { writeJson } from './write-json.js';

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
  text: () => string,
  document: () => object,
  { json, junit, quiet }: ListOptions,
): Promise<void> {
  if (junit !== undefined)
    throw new RequestError('a list is no report of tests; leave out --junit, or take --json');
  if (json !== '-' && quiet !== true) process.stdout.write(text());
  if (json !== undefined) await writeJson(json, document());
}
