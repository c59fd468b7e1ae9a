import type { FormatName } from '../formats/index.js';
import type { Quantity } from '../problem/index.js';
import { boundsOf, type ElementBounds } from './element-bounds.js';
import { testElements, type ElementTest } from './element-test.js';
import type { ComparedQuantity } from './kernel-outputs.js';
import { testNumbers, type NumberTest } from './number-test.js';
import { testSpread, type SpreadTest } from './spread-test.js';
import {
  inTestOrder,
  structureQuantity,
  type StructureResult,
} from './structure/structure-result.js';

/** Results of the tests of a quantity whose rows are vectors. */
export interface JudgedVectors {
  readonly row: 'vector';
  readonly quantity: Quantity;
  readonly format: FormatName;
  /** The values that were judged. Not to be changed. */
  readonly values: Float64Array;
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
  readonly structure: readonly StructureResult[];
}

/** Results of the tests of a quantity that is one number a row. */
export interface JudgedNumbers {
  readonly row: 'number';
  readonly quantity: Quantity;
  readonly format: FormatName;
  /** The values that were judged. Not to be changed. */
  readonly values: Float64Array;
  readonly numbers: NumberTest;
  readonly structure: readonly StructureResult[];
}

/** Results of the tests of one quantity. */
export type JudgedQuantity = JudgedVectors | JudgedNumbers;

/** Results of the tests of all outputs of a kernel, by quantity; null for those that it does not give. */
export interface JudgedOutputs {
  readonly out: JudgedVectors;
  readonly lse: JudgedNumbers | null;
  readonly [name: string]: JudgedQuantity | null | undefined;
}

/** Data that every quantity of an audit is judged by. */
interface JudgementMeasure {
  readonly bounds: ElementBounds;
  /** Whether an element without a bound may be infinite or NaN: `Premises.isShortRange`. */
  readonly admitsOverflow: boolean;
  /** The rate of the spread of one quantity. */
  readonly falseAlarmRate: number;
  /** The structure results of all quantities. */
  readonly structure: readonly StructureResult[];
}

/**
 * Judges one quantity by the tests that fit its rows.
 * @throws RequestError where there are no bounds for it
 */
export function judgeQuantity(
  compared: ComparedQuantity,
  { bounds, admitsOverflow, falseAlarmRate, structure }: JudgementMeasure,
): JudgedQuantity {
  const { quantity, format, values } = compared;
  const { total } = boundsOf(bounds, quantity);
  const common = {
    quantity,
    format,
    values,
    structure: structure.filter(({ test }) => structureQuantity(test) === quantity.name),
  };
  return quantity.row === 'vector'
    ? {
        row: 'vector',
        ...common,
        elements: testElements(compared, total, admitsOverflow),
        spread: testSpread(compared, bounds, falseAlarmRate),
      }
    : { row: 'number', ...common, numbers: testNumbers(compared, total) };
}

/** The judged quantities in the order of their table. */
export function judgedQuantities(outputs: JudgedOutputs): readonly JudgedQuantity[] {
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
