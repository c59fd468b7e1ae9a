import { atomicWriteFile } from '../io/index.js';

/**
 * Writes a value as indented JSON to a file, whole or not at all, or to standard output for `-`.
 * @throws RequestError when the file cannot be written
 */
export async function writeJson(target: string, value: object): Promise<void> {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  if (target === '-') process.stdout.write(text);
  else await atomicWriteFile(target, text);
}
