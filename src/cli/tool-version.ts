import { readFileSync } from 'node:fs';
import { lazily } from '../reuse.js';

/** The version in the package's own package.json, from the sources and from dist alike. */
export const toolVersion = lazily((): string => {
  for (const up of ['../../package.json', '../../../package.json']) {
    try {
      const parsed: unknown = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8'));
      if (typeof parsed === 'object' && parsed !== null && 'version' in parsed)
        return String(parsed.version);
    } catch {
      // Not at this depth.
    }
  }
  return 'unknown';
});
