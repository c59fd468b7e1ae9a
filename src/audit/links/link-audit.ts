import { listed, stated, type StatedVerdict } from '../../words/index.js';
import type { FoundCause } from '../conduct/causes.js';
import { failureReason } from '../verdict.js';

/** The links of the decode chain that are judged by contracts of their own: what attention is given, and what becomes of it. */
export const linkContracts = ['prologue', 'selection', 'merge', 'cache-write'] as const;
/** One of {@link linkContracts}. */
export type LinkContractName = (typeof linkContracts)[number];

/** One thing that a link has to get right: what was counted, what is wrong, and what could have gone either way. */
export interface LinkCheck {
  /** As in findings and reports: lower case, with hyphens. */
  readonly name: string;
  /** Its name in tables. */
  readonly label: string;
  /** What is counted, in the plural: indices, stored numbers, elements. */
  readonly parts: string;
  /** What is true where it passes, in a clause: "each row lists its 64 largest scores". */
  readonly claim: string;
  /** Number of parts that were held against what is right. */
  readonly checked: number;
  readonly wrong: number;
  /** Number of right parts that the allowed roundings leave a choice: ties, and what is within roundings of one. */
  readonly free: number;
  /** The largest share of its bound that a part uses; null where a part is right or wrong without a bound. */
  readonly worstShare: number | null;
  /** Evidence for the part that is most wrong, in a sentence without a full stop, with its place; null where none is wrong. */
  readonly statement: string | null;
  /** Whether it holds for any roundings; false for a test with a false-alarm rate. */
  readonly isWorstCase: boolean;
  /** The reason why nothing of it was judged; null where it was. */
  readonly unjudged: string | null;
  /** Whether without it there is no pass. */
  readonly isRequired: boolean;
}

/** A reason to fail a link. */
export interface LinkFinding {
  /** The name of the check that fails. */
  readonly quantity: string;
  readonly test: 'link';
  readonly isWorstCase: boolean;
  readonly statement: string;
}

/** The verdict on a link. */
export interface LinkVerdict extends StatedVerdict {
  readonly pass: boolean;
  /** Whether every required check was made. */
  readonly judged: boolean;
  readonly findings: readonly LinkFinding[];
  /** Null on a pass. */
  readonly diagnosis: FoundCause | null;
  readonly premise: null;
  /** Further remarks, a clause each. */
  readonly notes: readonly string[];
}

/** The judgement of a link. */
export interface LinkAudit {
  readonly contract: LinkContractName;
  /** Sizes and settings in one sentence. */
  readonly description: string;
  /** Sizes and settings by name. */
  readonly settings: Readonly<Record<string, string | number | boolean | null>>;
  readonly checks: readonly LinkCheck[];
  readonly verdict: LinkVerdict;
  /** The arithmetic that the link may have, in words: "any fp32 sums of bf16 products". */
  readonly arithmetic: string;
  /** The probability that its statistical checks fail a correct link; null where it has none. */
  readonly falseAlarmRate: number | null;
}

function findingOf({ name, statement, isWorstCase, wrong, checked, parts }: LinkCheck) {
  return {
    quantity: name,
    test: 'link',
    isWorstCase,
    statement: statement ?? `${wrong} of ${checked} ${parts} are wrong`,
  } as const satisfies LinkFinding;
}

/** "3 of 2048 indices could go either way"; none where rounding leaves no choice. */
function freeClause({ free, checked, parts }: LinkCheck): string[] {
  return free === 0 ? [] : [`${free} of ${checked} ${parts} could go either way`];
}

/**
 * Pass when nothing of any check is wrong, and each required one was made. A fail gives its cause, from `diagnose`; a pass says
 * what could have gone either way and what was not judged.
 * @param notes remarks on the result, a clause each
 * @param diagnose called once a check fails
 */
export function reachLinkVerdict(
  checks: readonly LinkCheck[],
  diagnose: () => FoundCause,
  notes: readonly string[] = [],
): LinkVerdict {
  const isEmpty = ({ checked, unjudged }: LinkCheck) => unjudged !== null || checked === 0;
  const missing = checks.filter((check) => check.isRequired && isEmpty(check));
  const judged = missing.length === 0;
  const [first, ...others] = checks.filter(({ wrong }) => wrong > 0).map(findingOf);
  if (first !== undefined) {
    const diagnosis = diagnose();
    const reason = failureReason(first, diagnosis, null, '');
    const findings = [first, ...others];
    return {
      pass: false,
      ...stated('FAIL', reason),
      judged,
      findings,
      diagnosis,
      premise: null,
      notes,
    };
  }
  const none = { judged, findings: [], diagnosis: null, premise: null, notes } as const;
  if (!judged) {
    const reasons = missing.map(
      ({ label, unjudged }) => unjudged ?? `${label} has nothing to judge`,
    );
    return { pass: false, ...stated('NOT JUDGED', `${reasons.join('; ')}.`), ...none };
  }
  const made = checks.filter((check) => !isEmpty(check));
  const left = checks.flatMap(({ unjudged, label }) =>
    unjudged === null ? [] : [`${label.toLowerCase()} not judged: ${unjudged}`],
  );
  const clauses = [listed(made.map(({ claim }) => claim)), ...made.flatMap(freeClause), ...left];
  return { pass: true, ...stated('PASS', `${clauses.join('; ')}.`), ...none };
}
