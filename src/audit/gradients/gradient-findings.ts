import type { Quantity } from '../../problem/index.js';
import { formatNumber } from '../../words/index.js';
import { describePlace } from '../kernel-outputs.js';
import type { JudgedGradientName } from './gradient-quantities.js';
import type { JudgedGradient } from './judge-gradient.js';
import { isBeyond, type GradientStatistic } from './structure/gradient-statistic.js';

/** The kind of a fault of a gradient. */
export type GradientFault = 'non-finite' | 'scale' | 'sum' | 'pairing' | 'bound' | 'rms' | 'spread';

/** One reason to fail a gradient. */
export interface GradientFinding {
  /** The gradient's name. */
  readonly quantity: string;
  readonly test: `${string}-${GradientFault}`;
  /** Whether it holds for any roundings, however they depend on one another. */
  readonly isWorstCase: boolean;
  /** A sentence with the evidence. */
  readonly statement: string;
}

function finding(
  { quantity: { name } }: JudgedGradient,
  fault: GradientFault,
  statement: string,
): GradientFinding {
  const isWorstCase = fault === 'non-finite' || fault === 'bound';
  return { quantity: name, test: `${name}-${fault}`, isWorstCase, statement };
}

/** "batch 1, head 3, keys 128 to 255" of some rows of a gradient, whose head counts over [batch, heads]. */
export function describeRows(
  {
    scope,
    head,
    firstRow,
    lastRow,
  }: Pick<GradientStatistic, 'scope' | 'head' | 'firstRow' | 'lastRow'>,
  { axes }: Pick<Quantity, 'axes'>,
  heads: number,
): string {
  const batch = Math.floor(head / heads);
  const words = axes[2] === 'keys' ? 'keys' : 'queries';
  const tile = scope === 'tile' ? `, ${words} ${firstRow} to ${lastRow}` : '';
  return `${batch === 0 ? '' : `batch ${batch}, `}head ${head % heads}${tile}`;
}

/** The statement of a failing sum. */
function sumStatement(result: GradientStatistic, judged: JudgedGradient, where: string): string {
  const { statistic, threshold, test, column } = result;
  const { prose, name } = judged.quantity;
  const size = formatNumber(Math.abs(statistic));
  const explained = formatNumber(threshold);
  if (test === 'scale')
    return statistic <= -1 + 1e-9 && statistic >= -1 - 1e-9
      ? `${prose} is zero on ${where}`
      : statistic < -1
        ? `${prose} runs against what it should be on ${where} (slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${explained})`
        : `${prose} is ${formatNumber(100 * Math.abs(statistic))} % ${statistic > 0 ? 'large' : 'small'} on ${where} (slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${explained})`;
  if (test === 'pairing')
    return `⟨Q, dQ⟩ and ⟨K, dK⟩ of ${where}, which are one number, differ by ${size} of the sizes of their terms; rounding explains ${explained}`;
  const law = judged.isSample
    ? `the sum of ${prose} over the rows of the sample is off`
    : {
        dq: `the sum of dQ over the queries is off`,
        dk: `Σ dK over the keys is off, as where Σ dS of a row is not 0`,
        dv: `Σ dV is not Σ dO`,
        dbias: `the sum of dBias over its queries is off`,
        // One number for each head, so that there are no sums.
        dsink: `the sum of dSink is off`,
      }[name as JudgedGradientName];
  return `${law} in column ${column} of ${where} by ${size}; rounding explains ${explained}`;
}

/** The failing sums: for each test its widest failing scope. */
function sumFindings(judged: JudgedGradient): GradientFinding[] {
  const widestFirst = [...judged.structure].sort((a, b) => a.scope.localeCompare(b.scope));
  return (['scale', 'sum', 'pairing'] as const).flatMap((test) => {
    const failing = widestFirst.find((one) => one.test === test && isBeyond(one));
    if (failing === undefined) return [];
    const where = describeRows(failing, judged.quantity, judged.heads);
    return [finding(judged, test, sumStatement(failing, judged, where))];
  });
}

/** All that the tests found wrong with a gradient, the finding that explains most first. */
function findingsOf(judged: JudgedGradient, arithmetic: string): readonly GradientFinding[] {
  const { elements, spread, quantity } = judged;
  const { parts, prose } = quantity;
  const findings: GradientFinding[] = [];
  if (elements.nonFinite > 0)
    findings.push(
      finding(
        judged,
        'non-finite',
        `${elements.nonFinite} of ${elements.elements} ${parts} are NaN or infinite where a correct kernel is not, or the reverse; the first at ${describePlace(elements.firstNonFinite!)}`,
      ),
    );
  findings.push(...sumFindings(judged));
  if (elements.outside > 0) {
    const { at, error, bound } = elements.worst!;
    findings.push(
      finding(
        judged,
        'bound',
        bound === 0
          ? `${elements.outside} of ${elements.elements} ${parts} are not zero where nothing adds to them, the largest ${formatNumber(error)} at ${describePlace(at)}`
          : `${elements.outside} of ${elements.elements} ${parts} err by more than ${arithmetic} can; the worst by ${formatNumber(error)} where at most ${formatNumber(bound)}, at ${describePlace(at)}`,
      ),
    );
  }
  const failing = [...spread.results].reverse().find(({ measured, limit }) => measured > limit);
  if (failing !== undefined) {
    const { measured, expected, limit } = failing;
    findings.push(
      finding(
        judged,
        'rms',
        `the root mean square error of ${prose} on ${describeRows(failing, judged.quantity, judged.heads)} is ${formatNumber(measured)}, where roundings make ${formatNumber(expected)} and at most ${formatNumber(limit)}`,
      ),
    );
  }
  // Another finding reports the elements beyond the worst case.
  if (spread.outside > elements.outside) {
    const { at, error, bound } = spread.worst!;
    findings.push(
      finding(
        judged,
        'spread',
        `${spread.outside} of ${elements.elements} ${parts} err by more than independent roundings add up to; the worst by ${formatNumber(error)}, where these make at most ${formatNumber(bound)}, at ${describePlace(at)}`,
      ),
    );
  }
  return findings;
}

/** Attributes ⟨Q, dQ⟩ ≠ ⟨K, dK⟩ to dQ where dQ fails and dK does not, except by that. */
function withPairingPlaced(findings: readonly GradientFinding[]): readonly GradientFinding[] {
  const isPairing = ({ test }: GradientFinding) => test.endsWith('-pairing');
  const failing = new Set(
    findings.filter((one) => !isPairing(one)).map(({ quantity }) => quantity),
  );
  if (failing.has('dk') || !failing.has('dq')) return findings;
  return findings.map((one) =>
    isPairing(one) ? { ...one, quantity: 'dq', test: 'dq-pairing' } : one,
  );
}

/** All that the tests found wrong with gradients, one after the other; of each the finding that explains most first. */
export function gradientFindings(
  judged: readonly JudgedGradient[],
  arithmetic: string,
): readonly GradientFinding[] {
  return withPairingPlaced(judged.flatMap((one) => findingsOf(one, arithmetic)));
}
