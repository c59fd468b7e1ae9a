import { formatApart, formatNumber } from '../../words/index.js';
import type { Finding } from '../findings.js';
import type { RecurrentQuantityName } from '../../problem/index.js';
import { combine } from './draw-errors.js';
import { drawnLimit } from './drawn-limit.js';
import type { IdentityRule } from './identities.js';
import type { MeasuredIdentity } from './measure-part.js';
import type { HeadPart } from './head-part.js';

/** Two sums of a key head that are the same number for every correct kernel, up to rounding. */
export interface RecurrentIdentity extends HeadPart {
  /** Both sides in words, as in ⟨dO, O⟩ and ⟨dQ, Q⟩. */
  readonly sides: readonly [left: string, right: string];
  /** The quantity that is named where they differ. */
  readonly quantity: RecurrentQuantityName;
  readonly values: readonly [left: number, right: number];
  /** Their difference, and the most that rounding explains. */
  readonly statistic: number;
  readonly threshold: number;
}

/** An identity of a part, with the values that were given. */
export interface GivenIdentity {
  readonly part: HeadPart;
  readonly rule: IdentityRule;
  readonly measured: MeasuredIdentity;
  /** In the order of the part's rows. */
  readonly values: Readonly<Partial<Record<RecurrentQuantityName, Float64Array>>>;
}

/** Judges an identity by what its sums come to. @param probability that it fails a correct kernel */
export function judgeIdentity(
  { part, rule, measured, values }: GivenIdentity,
  probability: number,
): RecurrentIdentity {
  const { sides, quantity, combination, left: names } = rule;
  const ofLeft = Object.fromEntries(
    Object.entries(combination).filter(([name]) => names.some((one) => one === name)),
  );
  const left = combine(ofLeft, values);
  const statistic = combine(combination, values);
  let threshold = 0;
  measured.draws.forEach((draws, at) => {
    const mean = draws.reduce((sum, x) => sum + x * x, 0) / draws.length;
    const ofDraws = drawnLimit(probability, draws.length) * Math.sqrt(mean);
    threshold = Math.max(threshold, ofDraws + measured.alike[at]);
  });
  return {
    ...part,
    sides,
    quantity,
    values: [left, left - statistic],
    statistic,
    threshold: threshold + measured.radius,
  };
}

/** The findings of identities that fail: the worst of each. */
export function identityFindings(identities: readonly RecurrentIdentity[]): Finding[] {
  const use = ({ statistic, threshold }: RecurrentIdentity) => Math.abs(statistic) / threshold;
  const worst = new Map<string, RecurrentIdentity>();
  for (const one of identities) {
    const name = one.sides.join(' = ');
    const before = worst.get(name);
    // A difference that is no number has a finding of its elements.
    const isWorse = before === undefined || use(one) > use(before);
    if (Math.abs(one.statistic) > one.threshold && isWorse) worst.set(name, one);
  }
  return [...worst.values()].map((one) => {
    const { sides, quantity, values, statistic, threshold, entry, keyHead } = one;
    const [left, right] = formatApart(...values);
    return {
      quantity,
      test: `${quantity}-pairing` as const,
      isWorstCase: false,
      statement: `${sides[0]} and ${sides[1]} of ${entry === 0 ? '' : `batch ${entry}, `}key head ${keyHead}, which are one number, are ${left} and ${right}; rounding explains a difference of ${formatNumber(threshold)}, and it is ${formatNumber(Math.abs(statistic))}`,
    };
  });
}
