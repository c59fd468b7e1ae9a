import { RequestError } from '../../src/request-error.js';
import { regimeNames, regimes, type RegimeName } from './regimes.js';

/** A regime in words. */
export interface RegimeDescription {
  /** What its problems look like, in one line; scores in nats unless it says otherwise. */
  readonly description: string;
  /** What it is meant to provoke in a kernel, in one line. */
  readonly provokes: string;
}

/**
 * What the problems of a regime look like, and what they are for.
 * @throws RequestError for a regime that there is not
 */
export function describeRegime(name: RegimeName): RegimeDescription {
  if (!Object.hasOwn(regimes, name))
    throw new RequestError(
      `no regime ${JSON.stringify(name)}; choose from ${regimeNames.join(', ')}`,
    );
  const { description, provokes } = regimes[name];
  return { description, provokes };
}
