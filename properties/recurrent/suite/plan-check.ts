import type { PlannedLaw } from '../../suite/index.js';
import { recurrentLaw, recurrentLawIds, type RecurrentLawId } from '../laws/index.js';
import { narrowedTo, recurrentRegimeNames, type RecurrentRegimeName } from '../problems/index.js';
import {
  requireKnown,
  resolveRecurrentPromises,
  type RecurrentPromises,
  type ResolvedRecurrentPromises,
} from './promises.js';

/** The wanted part of the suite. */
export interface RecurrentCheckScope {
  /** Laws to try; default all. */
  readonly laws?: readonly RecurrentLawId[] | undefined;
  /** Regimes to draw problems in; default all. */
  readonly regimes?: readonly RecurrentRegimeName[] | undefined;
}

/** A law and the regimes to try it in. */
export interface PlannedRecurrentLaw extends Pick<PlannedLaw, 'skipped' | 'isPromised'> {
  readonly id: RecurrentLawId;
  readonly regimes: readonly RecurrentRegimeName[];
}

/** The plan of a check, made before anything runs. */
export interface RecurrentCheckPlan {
  readonly promises: ResolvedRecurrentPromises;
  readonly laws: readonly PlannedRecurrentLaw[];
}

/** The reason that a law is not tried on such a kernel; null if it is. */
function whyNot(id: RecurrentLawId, promises: ResolvedRecurrentPromises): string | null {
  const { narrow, ofGradients } = recurrentLaw(id);
  if (promises.laws[id] === 'none') return 'not promised';
  if (ofGradients === true && !promises.gradients) return 'gradients are not promised';
  return narrow?.(promises) === null ? 'what it speaks of is not promised' : null;
}

/**
 * The laws to try on a kernel of such promises, with their regimes, and the reasons for leaving out the others.
 * @throws RequestError for an unknown law, regime or promise
 */
export function planRecurrentCheck(
  given: RecurrentPromises = {},
  { laws = recurrentLawIds, regimes: wanted = recurrentRegimeNames }: RecurrentCheckScope = {},
): RecurrentCheckPlan {
  requireKnown('law', laws, recurrentLawIds);
  requireKnown('regime', wanted, recurrentRegimeNames);
  const promises = resolveRecurrentPromises(given);
  const plan = (id: RecurrentLawId): PlannedRecurrentLaw => {
    const refused = whyNot(id, promises);
    if (refused !== null) return { id, regimes: [], skipped: refused, isPromised: false };
    const { narrow, regimes: own = recurrentRegimeNames } = recurrentLaw(id);
    const constraints = narrow?.(promises) ?? promises;
    const usable = own.filter(
      (name) => wanted.includes(name) && narrowedTo(name, constraints) !== null,
    );
    const skipped = usable.length > 0 ? null : `it is tried in ${own.join(', ')} only`;
    return { id, regimes: usable, skipped, isPromised: true };
  };
  return { promises, laws: laws.map(plan) };
}
