import type { RecurrentDeclaration } from '../../../src/audit/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import {
  plainRecurrentFamilies,
  recurrentFamilies,
  type RecurrentFamily,
} from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { LawStrength } from '../../laws/index.js';
import {
  recurrentLaw,
  recurrentLawIds,
  type RecurrentConfiguration,
  type RecurrentLawId,
  type RecurrentLawPromises,
} from '../laws/index.js';

/** Promises of a kernel of linear attention: the problems that it takes, and the laws that it obeys. */
export interface RecurrentPromises {
  /** Default: all but mamba2, whose problems have inputs of their own. */
  readonly families?: readonly RecurrentFamily[] | undefined;
  /** Formats of q, k and v; default bf16 and fp16. */
  readonly formats?: readonly FormatName[] | undefined;
  /** The only dimensions of keys and of values; default any. */
  readonly dims?: readonly number[] | undefined;
  /** The only numbers of value heads that share a key head; default any. */
  readonly groupSizes?: readonly number[] | undefined;
  /** Whether it takes packed sequences; default true. */
  readonly packed?: boolean | undefined;
  /** Formats of initial states, none if it takes none; default fp32. */
  readonly initialState?: readonly FormatName[] | undefined;
  /** Whether it normalises q and k where a problem says so; default true. */
  readonly normalisation?: boolean | undefined;
  /** Whether it takes gates of −∞; default true. */
  readonly infiniteGates?: boolean | undefined;
  /** Whether it gives gradients; default false. */
  readonly gradients?: boolean | undefined;
  /** Whether its gradients have the same bits on every run; default false. */
  readonly deterministic?: boolean | undefined;
  /** Tokens that it takes at a time, at which problems are aimed; default 64. */
  readonly chunk?: number | undefined;
  /** What is declared of its arithmetic; default nothing. */
  readonly declared?: RecurrentDeclaration | undefined;
  /** Other settings in which it must be right, by name; default none. */
  readonly configurations?: Readonly<Record<string, RecurrentConfiguration>> | undefined;
  /** Laws that it obeys otherwise than usual. */
  readonly laws?: Readonly<Partial<Record<RecurrentLawId, LawStrength | 'none'>>> | undefined;
}

/** Promises with every default filled in. */
export interface ResolvedRecurrentPromises extends RecurrentLawPromises {
  readonly laws: Readonly<Record<RecurrentLawId, LawStrength | 'none'>>;
}

/** @throws RequestError for a name that is not known */
export function requireKnown(
  what: string,
  names: readonly string[],
  known: readonly string[],
): void {
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined)
    throw new RequestError(
      `there is no ${what} ${JSON.stringify(wrong)}; choose from ${known.join(', ')}`,
    );
}

/** Formats of tensors of a recurrence. */
export const recurrentFormats: readonly FormatName[] = ['bf16', 'fp16', 'fp32'];

/**
 * The promises with every default filled in.
 * @throws RequestError for unknown names, a strength that a law does not have, and numbers out of range
 */
export function resolveRecurrentPromises(
  promises: RecurrentPromises = {},
): ResolvedRecurrentPromises {
  const {
    families = plainRecurrentFamilies,
    formats = ['bf16', 'fp16'],
    initialState = ['fp32'],
  } = promises;
  const { chunk = 64, laws = {}, dims = null, groupSizes = null } = promises;
  requireKnown('family', families, Object.keys(recurrentFamilies));
  requireKnown('format', [...formats, ...initialState], recurrentFormats);
  requireKnown('law', Object.keys(laws), recurrentLawIds);
  const counts = [chunk, ...(dims ?? []), ...(groupSizes ?? [])];
  const areCounts = counts.every((count) => Number.isSafeInteger(count) && count > 0);
  if (families.length === 0 || formats.length === 0 || !areCounts)
    throw new RequestError(
      'promise at least one family and one format, and positive whole numbers for chunk, dims and groupSizes',
    );
  const strengths = recurrentLawIds.map((id) => {
    const { usual, strengths: known } = recurrentLaw(id);
    const strength = laws[id] ?? usual;
    requireKnown(`promise for ${id}`, [strength], [...known, 'none']);
    return [id, strength] as const;
  });
  return {
    families,
    formats,
    dims,
    groupSizes,
    packed: promises.packed ?? true,
    initialState,
    normalisation: promises.normalisation ?? true,
    infiniteGates: promises.infiniteGates ?? true,
    gradients: promises.gradients ?? false,
    deterministic: promises.deterministic ?? false,
    chunk,
    declared: promises.declared ?? {},
    configurations: promises.configurations ?? {},
    laws: Object.fromEntries(strengths) as ResolvedRecurrentPromises['laws'],
  };
}
