import { WorkingMemories } from '../../../oracles/index.js';
import type { RowsBound } from '../bounds/index.js';
import {
  measurePart,
  type PartRequest,
  type PartResults,
  type PartSettings,
  type PartTensors,
} from './measure-part.js';

/** The answer of another thread to a request. */
export interface PartAnswer {
  readonly result: PartResults[PartRequest['kind']];
  /** The bounds of the part's rows as they were made, where a visitor wants them. */
  readonly bounds: readonly RowsBound[];
}

/** A copy of the rows of a bound: its own arrays are used again. */
export function copiedBound({ firstRow, rows, unit, clustered, quantities }: RowsBound): RowsBound {
  const arrays = (value: unknown): unknown =>
    value instanceof Float64Array
      ? value.slice()
      : Object.fromEntries(
          Object.entries(value as object).map(([name, member]) => [name, arrays(member)]),
        );
  return {
    firstRow,
    rows,
    unit: unit.slice(),
    clustered: clustered.slice(),
    quantities: arrays(quantities) as RowsBound['quantities'],
  };
}

/**
 * Measures a request for another thread: see `measurePart`.
 * @param withBounds whether the bounds are wanted as they are made
 * @param memories memories that the loops work in
 */
export function measureApart(
  request: PartRequest,
  tensors: readonly PartTensors[],
  settings: PartSettings,
  withBounds: boolean,
  memories = new WorkingMemories(),
): PartAnswer {
  const bounds: RowsBound[] = [];
  const visitBounds = (bound: RowsBound) => bounds.push(copiedBound(bound));
  const result = measurePart(request, tensors, settings, {
    memories,
    ...(withBounds && { visitBounds }),
  });
  return { result, bounds };
}
