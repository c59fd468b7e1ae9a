import type {
  Evidence,
  LaneInstruction,
  LaneUnit,
  LaneValue,
  RegisterWidth,
  Meaning,
} from '../../../isa/index.js';

/** Facts that all rows of a family share. */
export interface FamilyFacts {
  readonly meaning: Meaning;
  readonly unit: LaneUnit;
  readonly evidence: Evidence;
  readonly source: string;
  /** Default 1. */
  readonly laneOperations?: 1 | 2;
}

/** The function of a row, and the widths of its registers. */
export interface RowFunction {
  readonly destinations: readonly RegisterWidth[];
  readonly sources: readonly RegisterWidth[];
  readonly evaluate: (...sources: LaneValue[]) => LaneValue | readonly LaneValue[];
}

/** A row of the table. */
export function row(name: string, operation: RowFunction, facts: FamilyFacts): LaneInstruction {
  const { destinations, sources, evaluate } = operation;
  const { meaning, unit, evidence, source, laneOperations = 1 } = facts;
  return {
    name,
    destinations,
    sources,
    evaluate,
    emit: null,
    meaning,
    unit,
    laneOperations,
    evidence,
    source,
  };
}

/** A row like that of `row`, for a function from registers of up to 32 bits to one of them. */
export function wordRow(
  name: string,
  destination: RegisterWidth,
  sources: readonly RegisterWidth[],
  compute: (...sources: number[]) => number,
  facts: FamilyFacts,
): LaneInstruction {
  const evaluate: RowFunction['evaluate'] = (...values) => compute(...(values as number[]));
  return row(name, { destinations: [destination], sources, evaluate }, facts);
}
