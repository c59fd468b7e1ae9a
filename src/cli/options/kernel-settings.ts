import { RequestError } from '../../request-error.js';

/**
 * The settings that --set options give, by key.
 * @throws RequestError for one that is not <key>=<value>, and for a key given twice
 */
export function kernelSettings(options: readonly string[] = []): Map<string, string> {
  const settings = new Map<string, string>();
  for (const text of options) {
    const equals = text.indexOf('=');
    if (equals < 1) throw new RequestError(`--set is ${JSON.stringify(text)}; give <key>=<value>`);
    const key = text.slice(0, equals);
    if (settings.has(key)) throw new RequestError(`--set gives ${key} twice; give it once`);
    settings.set(key, text.slice(equals + 1));
  }
  return settings;
}
