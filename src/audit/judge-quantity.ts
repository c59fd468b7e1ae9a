import type { FormatName } from '../formats/index.js';
import type { Quantity } from '../problem/index.js';
import { boundsOf, type ElementBounds } from './element-bounds.js';
import { nothingLost, testElements, type ElementTest, type LostElements } from './element-test.js';
import type { GradientTest } from './gradients/structure/gradient-statistic.js';
import type { ComparedQuantity, ComparedValues } from './kernel-outputs.js';
import type { RecurrentTest } from './recurrent/recurrent-statistic.js';
import { testNumbers, type NumberTest } from './number-test.js';
import { testSpreads, type SpreadTest, type Spreads } from './spread-test.js';
import type { ErrorStatistic } from './structure/error-statistic.js';
import {
  inTestOrder,
  structureQuantity,
  type StructureResult,
  type StructureTest,
} from './structure/structure-result.js';

/** A statistic of any quantity's errors. */
export type JudgedStatistic = ErrorStatistic<StructureTest | GradientTest | RecurrentTest>;

/** The part of the results that all quantities have. */
interface JudgedCommon<S extends JudgedStatistic> {
  readonly quantity: Quantity;
  /** Number of heads in a batch entry of it. */
  readonly heads: number;
  readonly format: FormatName;
  /** The values that were judged. Not to be changed. */
  readonly values: Float64Array;
  /** The worst result of each test and scope. */
  readonly structure: readonly S[];
  /** The elements that are no larger than underflow may take. */
  readonly lost: LostElements;
}

/** Results of the tests of a quantity that is judged element by element. */
export interface JudgedVectors<
  S extends JudgedStatistic = StructureResult,
> extends JudgedCommon<S> {
  readonly row: 'vector';
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
}

/** Results of the tests of a quantity that is one number a row. */
export interface JudgedNumbers<
  S extends JudgedStatistic = StructureResult,
> extends JudgedCommon<S> {
  readonly row: 'number';
  readonly numbers: NumberTest;
}

/** Results of the tests of one quantity of any kind. */
export type JudgedQuantity<S extends JudgedStatistic = JudgedStatistic> =
  JudgedVectors<S> | JudgedNumbers<S>;

/** Results of the tests of all outputs of a kernel, by quantity; null for those that it does not give. */
export interface JudgedOutputs {
  readonly out: JudgedVectors;
  readonly lse: JudgedNumbers | null;
  readonly [name: string]: JudgedQuantity<StructureResult> | null | undefined;
}

/** What the values of one quantity are judged by. */
export interface QuantityMeasure<S extends JudgedStatistic> extends Spreads {
  readonly falseAlarmRate: number;
  /** The worst statistics of its errors. */
  readonly structure: readonly S[];
  /** Default: nothing is lost. */
  readonly lost?: LostElements;
  /** Whether an element or a number without a bound may be infinite or NaN, by its index; default: none may. */
  readonly admitsOverflow?: (index: number) => boolean;
}

function commonOf<S extends JudgedStatistic>(
  { quantity, shape, format, values }: ComparedValues,
  { structure, lost = nothingLost }: QuantityMeasure<S>,
): JudgedCommon<S> {
  return { quantity, heads: shape[quantity.axes[1]], format, values, structure, lost };
}

/** Judges the elements of a quantity one by one, and how they spread. */
export function judgeVectors<S extends JudgedStatistic>(
  compared: ComparedValues,
  measure: QuantityMeasure<S>,
): JudgedVectors<S> {
  const { ofElements, falseAlarmRate, admitsOverflow } = measure;
  return {
    row: 'vector',
    ...commonOf(compared, measure),
    elements: testElements(compared, ofElements.total, admitsOverflow),
    spread: testSpreads(compared, measure, falseAlarmRate),
  };
}

/** Judges a quantity that is one number a row. */
export function judgeNumbers<S extends JudgedStatistic>(
  compared: ComparedValues,
  measure: QuantityMeasure<S>,
): JudgedNumbers<S> {
  const numbers = testNumbers(compared, measure.ofElements.total, measure.admitsOverflow);
  return { row: 'number', ...commonOf(compared, measure), numbers };
}

/** Data that every quantity of an audit is judged by. */
interface JudgementMeasure {
  readonly bounds: ElementBounds;
  /** Whether an element or a number without a bound may be infinite or NaN: `Premises.isShortRange`. */
  readonly admitsOverflow: boolean;
  /** The rate of the spread of one quantity. */
  readonly falseAlarmRate: number;
  /** The structure results of all quantities. */
  readonly structure: readonly StructureResult[];
  /** The part of each quantity, by name, that is no larger than underflow may take; none of those without one. */
  readonly lost?: Readonly<Partial<Record<string, LostElements>>>;
}

/**
 * Judges one quantity by the tests that fit its rows.
 * @throws RequestError where there are no bounds for it
 */
export function judgeQuantity(
  compared: ComparedQuantity,
  { bounds, admitsOverflow, falseAlarmRate, structure, lost = {} }: JudgementMeasure,
): JudgedQuantity<StructureResult> {
  const { quantity } = compared;
  const measure = {
    ofElements: boundsOf(bounds, quantity),
    unit: bounds.unit,
    falseAlarmRate,
    admitsOverflow: () => admitsOverflow,
    structure: structure.filter(({ test }) => structureQuantity(test) === quantity.name),
    lost: lost[quantity.name] ?? nothingLost,
  };
  return quantity.row === 'vector'
    ? judgeVectors(compared, measure)
    : judgeNumbers(compared, measure);
}

/** The judged quantities in the order of their table. */
export function judgedQuantities(
  outputs: JudgedOutputs,
): readonly JudgedQuantity<StructureResult>[] {
  return Object.values(outputs).filter((judged) => judged !== null && judged !== undefined);
}

/** The structure tests of all quantities, in the order of their list. */
export function structureOf({
  outputs,
}: {
  readonly outputs: JudgedOutputs;
}): readonly StructureResult[] {
  return inTestOrder(judgedQuantities(outputs).flatMap(({ structure }) => structure));
}
