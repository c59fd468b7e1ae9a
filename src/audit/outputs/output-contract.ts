import { levels, type AttentionReference } from '../../../oracles/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { Problem, ProblemShape } from '../../problem/index.js';
import { plainText } from '../../words/index.js';
import { KernelBound } from '../bounds/index.js';
import { diagnose, type Diagnosis } from '../diagnosis/index.js';
import { measureBounds } from '../element-bounds.js';
import { findingsOf, localStatement, outputWords } from '../findings.js';
import { judgedQuantities, judgeQuantity, type JudgedOutputs } from '../judge-quantity.js';
import { compareQuantity, type GivenQuantity } from '../kernel-outputs.js';
import { countLost, type LostElements } from '../element-test.js';
import type { Measured, OutputMeasurements } from '../parts/audit-plan.js';
import { quantisedInputs } from '../premises/quantised-inputs.js';
import { measurePremise } from '../premises/borne-out.js';
import { fitPremise } from '../premises/premise-fit.js';
import { fitQuantisation, quantisationNotes } from '../premises/quantisation-fit.js';
import { createRowLocator, locateOutputs, type Place } from '../rows/index.js';
import { usageBySequence, type SequenceUsage } from './sequence-usage.js';
import { locateMaps, type KeyTileMaps } from '../structure/key-tile-maps.js';
import { isKeyTileTestLeftOut } from '../structure/key-tile-plan.js';
import { untestedStructure } from '../structure/structure-result.js';
import { lostParts, type Explainers, type PremiseTest, type Verdict } from '../verdict.js';
import { conduct, usualFalseAlarmRate, type Contract, type Judged } from '../conduct/contract.js';
import { explainByHead } from './explain-by-head.js';
import { outputStages } from './output-stages.js';
import { planAudit, type PreparedAudit } from './plan-audit.js';
import { narrowerNotes, widenedCause } from './widened-output.js';

/** Results of the tests on a kernel's outputs, without the profile of their errors and the usual checks. */
export interface Judgement {
  readonly verdict: Verdict;
  readonly shape: ProblemShape;
  readonly reference: AttentionReference;
  readonly outputs: JudgedOutputs;
  /** The output, sequence by sequence; null without packed sequences. */
  readonly sequences: readonly SequenceUsage[] | null;
  /** What is there of each tile of keys, where some are off; else null. */
  readonly keyTiles: KeyTileMaps | null;
  readonly oracle: {
    /** Rows settled at each level of precision. */
    readonly rows: Readonly<Record<(typeof levels)[number], number>>;
    /** Largest radius relative to Σ p|v| / Σ p. */
    readonly largestRadius: number;
  };
  readonly falseAlarmRate: number;
  /** Number of rows that the statistics are made of; absent where it is all. */
  readonly statistics?: number;
  /** The arithmetic that the bounds are of, in words. */
  readonly arithmetic: string;
}

function rowsByLevel({ level: levelOf }: AttentionReference): Judgement['oracle']['rows'] {
  const rows = Object.fromEntries(levels.map((level) => [level, 0])) as Record<
    (typeof levels)[number],
    number
  >;
  for (const level of levelOf) rows[levels[level]]++;
  return rows;
}

function summariseOracle(reference: AttentionReference): Judgement['oracle'] {
  const { radius, magnitude } = reference.quantities.out;
  let largestRadius = 0;
  for (let i = 0; i < radius.length; i++)
    if (radius[i] > 0 && magnitude[i] > 0 && magnitude[i] < Infinity)
      largestRadius = Math.max(largestRadius, radius[i] / magnitude[i]);
  return { rows: rowsByLevel(reference), largestRadius };
}

/** Says so where a pass means little: no row has a finite output of keys that it sees. */
function hollowNote(reference: AttentionReference): string | null {
  const rows = rowsByLevel(reference);
  const all = reference.level.length;
  if (all === 0 || rows.empty + rows.special < all) return null;
  if (rows.special === 0) return 'no row sees a key, so that it must only be 0';
  const { values } = reference.quantities.out;
  return values.some((x) => Number.isFinite(x) && x !== 0)
    ? null
    : 'no exact element is a number other than 0, so that it must only be NaN or infinite where they are';
}

/** The probability of a false alarm that each quantity's spread may have: half of all, in equal parts. */
function spreadRate(given: readonly GivenQuantity[], randomRate: number): number {
  return randomRate / given.filter(({ quantity }) => quantity.row === 'vector').length;
}

/** Says which outputs are not judged, since no quantity has their name. */
function unjudgedNotes(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return [
    `not judged: ${names.map(plainText).join(', ')}, since no quantity that is judged has ${names.length === 1 ? 'this name' : 'these names'}`,
  ];
}

/** The types of the contract of outputs. */
export interface OutputTerms extends OutputMeasurements {
  readonly plan: PreparedAudit;
  readonly cause: Diagnosis;
  readonly result: Judgement;
}

/** The quantities, each judged by its measurements. */
function judgeAll(prepared: PreparedAudit, measured: Measured): JudgedOutputs {
  const { given, options, plan } = prepared;
  const { reference, bounds, structure } = measured;
  const randomRate = (options.falseAlarmRate ?? usualFalseAlarmRate) / 2;
  const all = Object.values(given).filter((one) => one !== null && one !== undefined);
  const measure = {
    bounds,
    admitsOverflow: plan.settings.premises.isShortRange,
    falseAlarmRate: spreadRate(all, randomRate),
    structure,
    // Only of the output, since scores are told apart by their sums.
    lost: { out: lostOf(prepared, measured) },
  };
  return Object.fromEntries(
    Object.entries(given).map(([name, one]) => [
      name,
      one === null || one === undefined
        ? null
        : judgeQuantity(compareQuantity(reference, one), measure),
    ]),
  ) as unknown as JudgedOutputs;
}

/** Judges the same outputs by other premises. */
function judgeAgain(
  { problem, given, options, plan }: PreparedAudit,
  reference: AttentionReference,
  premises: PremiseDeclaration,
): Judgement {
  const { thinning } = plan.settings;
  const falseAlarmRate = options.falseAlarmRate ?? usualFalseAlarmRate;
  const changed = { falseAlarmRate, premises, diagnose: false, reference, thinning };
  return conduct(outputContract, planAudit(problem, { given, unjudged: [] }, changed, false));
}

/**
 * Tests whether a kernel's errors are those that it declares: where most rows err by far less than the declaration predicts, the
 * output must pass without it, since the errors of the other rows have another cause.
 */
function testPremise(prepared: PreparedAudit, reference: AttentionReference): PremiseTest {
  const { problem, given, options, plan } = prepared;
  const { premises: declared = {}, arithmetic } = options;
  const nothing = { pass: true, statement: null };
  if (arithmetic !== undefined || plan.settings.premises.isUsual) return nothing;
  const measured = measurePremise({ problem, reference, outputs: given }, declared);
  if (measured === null || measured.isBorneOut) return nothing;
  const { pass, findings } = judgeAgain(prepared, reference, {}).verdict;
  // Without it nothing may have a bound, which is no reason to fail.
  if (!pass && findings.length === 0) return nothing;
  const statement = `premise not borne out: ${measured.statement}`;
  return pass
    ? { pass, statement: `P${statement.slice(1)}; it passes without as well` }
    : {
        pass: false,
        statement: `${statement}, and what some rows err by is no part of it: without it ${findings[0].statement}`,
      };
}

/** The explainers of a failure. */
function explainersOf(
  prepared: PreparedAudit,
  reference: AttentionReference,
  outputs: JudgedOutputs,
): Explainers {
  const { problem, given, options, plan } = prepared;
  const { premises } = plan.settings;
  const isFinite = judgedQuantities(outputs).every(
    (judged) => (judged.row === 'vector' ? judged.elements : judged.numbers).nonFinite === 0,
  );
  // Someone who declares something knows what the kernel does.
  const isDeclared = options.arithmetic !== undefined || !premises.isUsual;
  // An output that is rounded to a shorter format afterwards does not tell how it was computed.
  const isShortened = narrowerNotes(given.out.values, given.out.format).length > 0;
  const passes = (premises: PremiseDeclaration) =>
    judgeAgain(prepared, reference, premises).verdict.pass;
  return {
    diagnose: () => {
      const { memories } = options;
      const bound = new KernelBound(problem, reference, given.out.format, premises, { memories });
      const declared = options.premises;
      return diagnose({ problem, reference, outputs, bound, premises: declared, memories });
    },
    fitPremise: (findings, cause) =>
      cause?.id === 'quantised-operands' && !isDeclared && options.strictPremises !== true
        ? fitQuantisation(cause.sentence, (premises) => {
            const own = quantisedInputs(problem, premises);
            const { falseAlarmRate = usualFalseAlarmRate } = options;
            const again = { falseAlarmRate, premises, diagnose: false };
            const plan = planAudit(own, { given, unjudged: [] }, again, false);
            return conduct(outputContract, plan).verdict.pass;
          })
        : isDeclared || !isFinite || isShortened || options.strictPremises === true
          ? null
          : fitPremise({
              problem,
              reference,
              outputs: given,
              passes,
              cause,
              onlyLse: findings.every(({ quantity }) => quantity === 'lse'),
            }),
  };
}

/** Number of rows judged, and of all rows; null where all are judged. */
function sampleOf({ rows }: Problem, { batch, heads }: ProblemShape) {
  return rows === undefined ? null : { rows: rows.queries.length, of: batch * heads * rows.of };
}

/** The part of the output that is no larger than underflow may take. */
function lostOf({ problem, plan }: PreparedAudit, { reference, bounds }: Measured): LostElements {
  const { premises, arithmetic, outputFormat } = plan.settings;
  const { out } = reference.quantities;
  const { total } = bounds.quantities.out;
  return countLost(out.values, total, arithmetic.underflow.sums, () => {
    // As good as nothing.
    const least = arithmetic.underflow.sums * 2 ** -40;
    const ideal = { ...arithmetic, underflow: { weights: least, sums: least } };
    const bound = new KernelBound(problem, reference, outputFormat, {
      ...premises,
      underflow: least,
      sumUnderflow: least,
    });
    return measureBounds(problem, reference, ideal, bound).quantities.out.total;
  });
}

/** Judges the outputs of a kernel by the measurements. */
function judge(prepared: PreparedAudit, measured: Measured): Judged<OutputTerms> {
  const { problem, given, unjudged, options, plan, source } = prepared;
  const { reference, bounds, structure, keyTiles, rows: statistics } = measured;
  const { shape } = reference;
  const { format } = given.out;
  const { premises, arithmetic, thinning, limits } = plan.settings;
  if (statistics !== null)
    options.onElements?.({ reference, outputs: given, bounds, rows: statistics });
  const outputs = judgeAll(prepared, measured);
  const locator = createRowLocator(problem, shape);
  const located = locator === null ? outputs : locateOutputs(outputs, locator);
  const untested = untestedStructure(structure, shape, premises, {
    hasLse: given.lse !== null,
    isThin: isKeyTileTestLeftOut(problem, shape),
  });
  const notes = [
    ...narrowerNotes(given.out.values, format),
    ...unjudgedNotes(unjudged),
    ...quantisationNotes(problem, options.premises ?? {}, reference),
  ];
  const judged = judgedQuantities(located);
  const { description } = arithmetic;
  const words = { ...outputWords, arithmetic: description };
  const findings = findingsOf(judged, words);
  const isOfMain = findings.at(0)?.quantity === located.out.quantity.name;
  const evidence = {
    judged,
    required: [located.out],
    findings,
    localStatement: (place: Place) => localStatement(findings[0], judged, words, place),
    knownCause: isOfMain ? widenedCause(given.out, reference.quantities.out.values) : null,
    hollow: hollowNote(reference),
    left: lostParts(judged).map((part) => `${part} are no larger than underflow, and not judged`),
    testPremise: () => testPremise(prepared, reference),
    sample: sampleOf(problem, shape),
    unjudged: {
      unbounded: () =>
        `no element has a bound under the premises, ${description}; scores, weights or sums leave the range of their formats everywhere`,
      lost: (named: string) =>
        `nothing in ${named} is larger than underflow, which may take all of it`,
    },
  };
  const isExplained = options.diagnose !== false;
  return {
    evidence,
    explainers: isExplained ? explainersOf(prepared, reference, outputs) : null,
    ...(isExplained &&
      source !== null && {
        explainElsewhere: () =>
          explainByHead(
            prepared,
            source,
            { reference, outputs: located },
            (alone) => conduct(outputContract, alone).verdict,
          ),
      }),
    result: (reached, note) => ({
      verdict: { ...reached, notes: note === undefined ? notes : [...notes, note], untested },
      reference,
      shape,
      outputs: located,
      sequences: usageBySequence(problem, reference, given.out.values, bounds.quantities.out.total),
      keyTiles: locator === null ? keyTiles : locateMaps(keyTiles, locator),
      arithmetic: description,
      oracle: summariseOracle(reference),
      falseAlarmRate: options.falseAlarmRate ?? usualFalseAlarmRate,
      ...(thinning !== null && { statistics: limits.extent.heads * limits.extent.queries }),
    }),
  };
}

/** The contract of softmax attention: its output and its LSE. */
export const outputContract: Contract<OutputTerms> = { stages: outputStages, judge };
