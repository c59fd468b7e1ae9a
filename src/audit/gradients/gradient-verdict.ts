import { formatNumber, stated, type StatedVerdict } from '../../words/index.js';
import { placeInBrackets } from '../rows/index.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import type { Finding } from '../findings.js';
import type { JudgedGradient } from './judge-gradient.js';

/** The findings of an audit of gradients, in one sentence and in full. */
export interface GradientVerdict extends StatedVerdict {
  readonly pass: boolean;
  /** Whether something of every gradient was held against a bound; without, there is no pass. */
  readonly judged: boolean;
  /** Every reason to fail; empty on a pass. */
  readonly findings: readonly Finding[];
  /** The cause of the failure; null on a pass, or where none is asked for. */
  readonly diagnosis: GradientDiagnosis | null;
  /** Parts of the gradients that the verdict does not cover, a clause each. */
  readonly notJudged: readonly string[];
}

/** "dQ, dK and dV" */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function isUnbounded({ elements }: JudgedGradient): boolean {
  return elements.elements > 0 && elements.unbounded === elements.elements;
}

/** The parts of gradients that are no larger than underflow may take, a clause each. */
function lostClauses(judged: readonly JudgedGradient[]): string[] {
  return judged
    .filter(({ lost }) => lost.elements > 0 && !lost.isAll)
    .map(
      ({ lost, elements, quantity }) =>
        `${lost.elements} of ${elements.elements} ${quantity.parts}, which are no larger than underflow`,
    );
}

/** The reason of a pass, with the share of the bounds that is used. */
function passReason(judged: readonly JudgedGradient[]): string {
  const names = judged.map(({ quantity }) => quantity.prose);
  const worst = judged.reduce((most, { elements }) => Math.max(most, elements.worstRatio), 0);
  const left = judged
    .filter(({ elements }) => elements.unbounded > 0)
    .map(
      ({ elements, quantity }) =>
        `; ${elements.unbounded} of ${elements.elements} ${quantity.parts} have none`,
    );
  return `${listed(names)} ${names.length === 1 ? 'stays' : 'stay'} within what rounding explains; the worst element uses ${formatNumber(100 * worst)} % of its bound${left.join('')}.`;
}

/**
 * Pass when every test of every gradient passes.
 * @param diagnose called once the audit fails; null where no cause is wanted
 */
export function reachGradientVerdict(
  judged: readonly JudgedGradient[],
  findings: readonly Finding[],
  notJudged: readonly string[],
  diagnose: (() => GradientDiagnosis) | null,
): GradientVerdict {
  const unbounded = judged.filter(isUnbounded);
  const lost = judged.filter((one) => one.lost.isAll);
  const common = {
    findings,
    notJudged: [...notJudged, ...lostClauses(judged)],
    judged: unbounded.length + lost.length === 0,
  };
  if (findings.length > 0) {
    const diagnosis = diagnose?.() ?? null;
    const cause =
      diagnosis === null
        ? `${findings[0].statement}.`
        : diagnosis.id === 'unexplained'
          ? `${findings[0].statement}; the cause is unexplained.`
          : `${diagnosis.sentence}${placeInBrackets(diagnosis.place)}.`;
    return { pass: false, ...stated('FAIL', cause), diagnosis, ...common };
  }
  if (common.judged)
    return { pass: true, ...stated('PASS', passReason(judged)), diagnosis: null, ...common };
  const named = (some: readonly JudgedGradient[]) =>
    listed(some.map(({ quantity }) => quantity.prose));
  const reasons = [
    ...(unbounded.length === 0 ? [] : [`no element of ${named(unbounded)} has a bound`]),
    ...(lost.length === 0 ? [] : [`nothing in ${named(lost)} is larger than underflow`]),
  ];
  return {
    pass: false,
    ...stated('NOT JUDGED', `${reasons.join('; ')}.`),
    diagnosis: null,
    ...common,
  };
}
