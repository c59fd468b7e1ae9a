import { RequestError } from '../../src/request-error.js';
import {
  admittedFeatures,
  lawIds,
  laws,
  promisedConstraints,
  type Law,
  type LawId,
} from '../laws/index.js';
import {
  fittingRegimes,
  gradientRegimeNames,
  regimeNames,
  servedRegimeNames,
  usualRegimeNames,
  type RegimeName,
} from '../problems/index.js';
import { knownName } from './promised-laws.js';
import {
  resolvePromises,
  type KernelPromises,
  type ResolvedPromises,
  promisesOf,
} from './promises.js';

/** The wanted part of the suite. */
export interface CheckScope {
  /** Laws to try; default all. */
  readonly laws?: readonly LawId[] | undefined;
  /** Regimes to draw problems in; default all. */
  readonly regimes?: readonly RegimeName[] | undefined;
}

/** A law and the regimes to try it in. */
export interface PlannedLaw {
  readonly id: LawId;
  /** The wanted regimes to try it in. */
  readonly regimes: readonly RegimeName[];
  /** The reason that it is not tried at all; null if it is. */
  readonly skipped: string | null;
  /** Whether the kernel promises it, so that it counts as missing if it was never tried. */
  readonly isPromised: boolean;
}

/** The plan of a check, made before anything runs. */
export interface CheckPlan {
  readonly promises: ResolvedPromises;
  readonly laws: readonly PlannedLaw[];
}

function isOfGradients(id: LawId): boolean {
  const law: Law = laws[id];
  return law.ofGradients === true;
}

/** The reason that a law is not tried on such a kernel; null if it is. */
function whyNot(id: LawId, promises: ResolvedPromises): string | null {
  if (promises.laws[id] === 'none') return 'not promised';
  const law: Law = laws[id];
  if (promises.causal === 'only' && law.constraints?.causal === false)
    return 'it needs problems without a causal mask, which are not promised';
  if (law.ofGradients === true && !promises.gradients) return 'gradients are not promised';
  return law.notFor?.(promises) ?? null;
}

/** The promised features that no problem of the tried laws had, in a sentence; none where there is nothing to say. */
export function featureNotes(
  tried: readonly { readonly id: LawId; readonly skipped: string | null }[],
  promises: Pick<ResolvedPromises, 'features'>,
): readonly string[] {
  const left = tried.flatMap(({ id, skipped }) => {
    if (skipped !== null) return [];
    const admitted = admittedFeatures(laws[id], promises);
    const missing = promises.features.filter((kind) => !admitted.includes(kind));
    return missing.length === 0 ? [] : [`${id} without ${missing.join(', ')}`];
  });
  return left.length === 0
    ? []
    : [`laws that say nothing of a feature are not tried with it: ${left.join('; ')}`];
}

/** The usual regimes; for laws of gradients also those that provoke gradients. */
function regimesOf(law: Law, usual: readonly RegimeName[]): readonly RegimeName[] {
  return law.ofGradients === true ? [...new Set([...usual, ...gradientRegimeNames])] : usual;
}

/** The regimes that a law can be tried in on such a kernel, or the reason that there is none. */
function usableRegimes(
  id: LawId,
  given: ResolvedPromises,
  isNamed: boolean,
): readonly RegimeName[] | string {
  const law: Law = laws[id];
  const promises = promisesOf(law, given);
  const usual = promises.features.length === 0 && !isNamed ? usualRegimeNames : servedRegimeNames;
  const own = law.regimes ?? (isNamed ? regimeNames : regimesOf(law, usual));
  // Problems of its own do not depend on the regime; each names one, for the seed.
  if (law.problems !== undefined) return own;
  try {
    const admitted = { ...promises, features: admittedFeatures(law, promises) };
    return fittingRegimes({
      ...promisedConstraints(admitted),
      ...law.constraints,
      regimes: own,
      tiling: { blockKeys: promises.blockKeys },
    });
  } catch (error) {
    if (error instanceof RequestError) return `the promises leave no problem: ${error.message}`;
    throw error;
  }
}

/**
 * The laws to try on a kernel of such promises, with their regimes, and the reasons for leaving out the
 * others.
 * @throws RequestError for an unknown law, regime or promise
 */
export function planCheck(promises: KernelPromises = {}, scope: CheckScope = {}): CheckPlan {
  for (const id of scope.laws ?? []) knownName('law', id, lawIds);
  for (const name of scope.regimes ?? []) knownName('regime', name, regimeNames);
  const resolved = resolvePromises(promises);
  const wanted = scope.regimes ?? regimeNames;
  const plan = (id: LawId): PlannedLaw => {
    const refused = whyNot(id, resolved);
    if (refused !== null) return { id, regimes: [], skipped: refused, isPromised: false };
    const own = usableRegimes(id, resolved, scope.regimes !== undefined);
    if (typeof own === 'string') return { id, regimes: [], skipped: own, isPromised: true };
    const regimes = own.filter((name) => wanted.includes(name));
    const skipped = regimes.length === 0 ? `it is tried in ${own.join(', ')} only` : null;
    return { id, regimes, skipped, isPromised: true };
  };
  // Of kernels without gradients nothing else is said of these laws than that they were not asked for.
  const all = lawIds.filter((id) => resolved.gradients || !isOfGradients(id));
  return { promises: resolved, laws: (scope.laws ?? all).map(plan) };
}
