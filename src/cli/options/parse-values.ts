import { InvalidArgumentError } from 'commander';
import { RequestError } from '../../request-error.js';

const mostThreads = 1024;

/** The value of --threads. @throws InvalidArgumentError for anything but 1 to 1024 */
export function threadCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > mostThreads)
    throw new InvalidArgumentError(`give a whole number from 1 to ${mostThreads}.`);
  return count;
}

/** A count of at least one. @throws InvalidArgumentError for anything but a whole number from 1 on */
export function atLeastOne(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1)
    throw new InvalidArgumentError('give a whole number from 1 on.');
  return count;
}

/**
 * A positive number given as text.
 * @throws RequestError for anything else
 */
export function parsePositive(text: string, name: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value > 0 && value < Infinity))
    throw new RequestError(`${name} is ${JSON.stringify(text)}; give a positive number`);
  return value;
}

/**
 * A probability given as text, above 0 and below 1.
 * @throws RequestError for anything else
 */
export function parseProbability(text: string, name: string): number {
  const value = parsePositive(text, name);
  if (value >= 1)
    throw new RequestError(`${name} is ${JSON.stringify(text)}; give a number between 0 and 1`);
  return value;
}

/** Sizes in a list with commas. @throws RequestError for anything but positive whole numbers */
export function parseSizes(text: string, option: string, example: string): number[] {
  return text.split(',').map((part) => {
    const size = Number(part);
    if (!/^\s*\d+\s*$/.test(part) || !Number.isSafeInteger(size) || size < 1)
      throw new RequestError(
        `${option} is ${JSON.stringify(text)}; give positive whole numbers, as in ${example}`,
      );
    return size;
  });
}
