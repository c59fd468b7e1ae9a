import { everywhere, type Place } from '../rows/index.js';

/** Lists the causes of one kind that apply. */
export type CauseFamily<Context, Cause> = (context: Context) => Iterable<Cause>;

/**
 * Tries all causes of some families, one after the other.
 * @param accept what is known of an accepted cause; null for one that is not
 */
export function acceptedCauses<Context, Cause, Accepted>(
  families: readonly CauseFamily<Context, Cause>[],
  context: Context,
  accept: (cause: Cause) => Accepted | null,
): Accepted[] {
  const found: Accepted[] = [];
  for (const family of families)
    for (const cause of family(context)) {
      const accepted = accept(cause);
      if (accepted !== null) found.push(accepted);
    }
  return found;
}

/** The cause of a failure, found by what it predicts. */
export interface FoundCause {
  /** The name of the cause; `unexplained` where no known cause gives these results. */
  readonly id: string;
  /** Names of other causes that would have given the same results on this problem. */
  readonly equivalents: readonly string[];
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  /** The place where the cause shows; everywhere where it is unexplained. */
  readonly place: Place;
  /** Evidence for the cause, a clause each. */
  readonly evidence: readonly string[];
}

/** A cause that is accepted: its name, and the cause in words. */
interface NamedCause {
  readonly id: string;
  readonly sentence: string;
  readonly place?: Place;
}

/** A failure that no cause explains. */
export function unexplainedCause(evidence: readonly string[] = []): FoundCause {
  return {
    id: 'unexplained',
    equivalents: [],
    sentence: 'the cause is unexplained',
    place: everywhere,
    evidence,
  };
}

/** A cause that was found, by its evidence, with the names of others that would have given the same. */
export function foundCause(
  { id, sentence, place = everywhere }: NamedCause,
  evidence: readonly string[],
  others: readonly Pick<NamedCause, 'id'>[] = [],
): FoundCause {
  const equivalents = [...new Set(others.map((one) => one.id))].filter((one) => one !== id);
  return { id, equivalents, sentence, place, evidence };
}
