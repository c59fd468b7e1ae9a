import type { JudgedGradientName } from '../../../../src/audit/gradients/gradient-quantities.js';
import { judgedGradients } from '../../../../src/audit/gradients/gradient-quantities.js';
import {
  gradientEvidence,
  type GradientVerdict,
} from '../../../../src/audit/gradients/gradient-verdict.js';
import type { GradientDiagnosis } from '../../../../src/audit/gradients/diagnosis/diagnosis.js';
import type { JudgedGradient } from '../../../../src/audit/gradients/judge-gradient.js';
import type { GradientStatistic } from '../../../../src/audit/gradients/structure/gradient-statistic.js';
import type { Finding } from '../../../../src/audit/findings.js';
import type { SpreadResult } from '../../../../src/audit/spread-test.js';
import { reachVerdict } from '../../../../src/audit/verdict.js';

/** The verdict on gradients; without a cause where `diagnose` is null. */
export function reachGradientVerdict(
  judged: readonly JudgedGradient[],
  findings: readonly Finding[],
  left: readonly string[],
  diagnose: (() => GradientDiagnosis) | null,
): GradientVerdict {
  const { evidence, notJudged } = gradientEvidence(judged, findings, left);
  return { ...reachVerdict(evidence, diagnose && { diagnose }), notJudged };
}

/** Results of a gradient that passes everything, but for what is changed. */
export interface Changes {
  readonly elements?: Partial<JudgedGradient['elements']>;
  readonly spread?: Partial<JudgedGradient['spread']>;
  readonly structure?: readonly GradientStatistic[];
  readonly lost?: JudgedGradient['lost'];
  readonly isSample?: boolean;
  readonly heads?: number;
}

/** Results of the tests of a gradient of a hundred elements. */
export function judgementOf(
  name: JudgedGradientName,
  { elements, spread, structure = [], lost, isSample = false, heads = 4 }: Changes = {},
): JudgedGradient {
  const same = { p50: 0, p90: 0, p99: 0, p999: 0 };
  return {
    row: 'vector',
    quantity: judgedGradients.find((one) => one.name === name)!,
    heads,
    isSample,
    format: 'bf16',
    values: new Float64Array(0),
    error: {
      elements: 100,
      nonFinite: { output: 0, oracle: 0 },
      absolute: { max: 0, rms: 0, mean: 0, percentiles: same },
      ulps: { max: 0, rms: 0, percentiles: same },
      relative: { max: 0, rms: 0 },
      slope: 1,
      worst: null,
    },
    elements: {
      elements: 100,
      outside: 0,
      unbounded: 0,
      nonFinite: 0,
      worstRatio: 0.5,
      medianRatio: 0.1,
      worst: null,
      firstNonFinite: null,
      ...elements,
    },
    spread: {
      outside: 0,
      worstRatio: 0.5,
      worst: null,
      measured: 1,
      expected: 1,
      results: [],
      ...spread,
    },
    structure,
    lost: lost ?? { elements: 0, isAll: false },
    techniques: null,
  };
}

/** A sum of a tile of rows, or a head, of what a judgement needs. */
export function statisticOf(changes: Partial<GradientStatistic> = {}): GradientStatistic {
  return {
    test: 'sum',
    scope: 'head',
    head: 0,
    firstRow: 0,
    rows: 1,
    lastRow: 0,
    column: 0,
    statistic: 0,
    threshold: 1,
    ...changes,
  };
}

/** The spread of a tile of rows, or a head. */
export function spreadOf(changes: Partial<SpreadResult> = {}): SpreadResult {
  return {
    scope: 'head',
    head: 0,
    firstRow: 0,
    rows: 1,
    lastRow: 0,
    measured: 0.5,
    expected: 0.5,
    limit: 1,
    ...changes,
  };
}
