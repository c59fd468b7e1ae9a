import {
  integerOf,
  type IntegerType,
  type LaneInstruction,
  type LaneValue,
  registerOf,
  registerValue,
} from '../../../isa/index.js';
import { type FamilyFacts, row } from './row.js';

/** The function that an instruction on integers computes. */
export interface IntegerFunction {
  readonly result: IntegerType;
  readonly sources: readonly IntegerType[];
  /** The exact result, whose low bits are kept, from the integers in the registers. */
  readonly compute: (...sources: bigint[]) => bigint;
}

/** A row on integers. The register of an 8-bit result holds its integer, sign- or zero-extended. */
export function integerRow(
  name: string,
  { result, sources, compute }: IntegerFunction,
  facts: FamilyFacts,
): LaneInstruction {
  const width = registerOf(result.bits);
  const operation = {
    destinations: [width],
    sources: sources.map(({ bits }) => registerOf(bits)),
    evaluate: (...values: LaneValue[]) => {
      const integers = values.map((value, i) => integerOf(sources[i], value));
      return registerValue(width, integerOf(result, registerValue(64, compute(...integers))));
    },
  };
  return row(name, operation, facts);
}
