import { RequestError } from '../src/request-error.js';

/**
 * The name as one of those known.
 * @throws RequestError for another, with all of them
 */
export function knownName<T extends string>(what: string, name: string, known: readonly T[]): T {
  const found = known.find((candidate) => candidate === name);
  if (found === undefined)
    throw new RequestError(
      `there is no ${what} ${JSON.stringify(name)}; choose from ${known.join(', ')}`,
    );
  return found;
}
