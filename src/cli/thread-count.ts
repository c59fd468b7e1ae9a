import { InvalidArgumentError } from 'commander';

const mostThreads = 1024;

/** The value of --threads. @throws InvalidArgumentError for anything but 1 to 1024 */
export function threadCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > mostThreads)
    throw new InvalidArgumentError(`give a whole number from 1 to ${mostThreads}.`);
  return count;
}
