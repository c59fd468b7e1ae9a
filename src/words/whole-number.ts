import { RequestError } from '../request-error.js';

/**
 * A whole number given as text, from `least` on.
 * @throws RequestError for anything else
 */
export function parseWhole(text: string, name: string, least: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < least)
    throw new RequestError(
      `${name} is ${JSON.stringify(text)}; give a whole number${least > Number.MIN_SAFE_INTEGER ? ` from ${least}` : ''}`,
    );
  return value;
}
