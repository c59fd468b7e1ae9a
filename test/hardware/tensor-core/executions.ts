import { createTensorCoreTile, tensorCoreProduct } from '../../../src/hardware/index.js';
import { arithmeticOf, columns } from './captures.js';
import type { CapturedInstruction, Execution } from './captures.js';

/** Results compared, and how many of them differ from the captured ones. */
export interface Comparison {
  compared: number;
  different: number;
}

function compare(comparison: Comparison, results: Uint32Array, captured: Uint32Array): void {
  comparison.compared += captured.length;
  for (let i = 0; i < captured.length; i++) if (results[i] !== captured[i]) comparison.different++;
}

/** Executes an instruction by its definition. */
export function compareDefinition(
  instruction: CapturedInstruction,
  executions: readonly Execution[],
): Comparison {
  const comparison = { compared: 0, different: 0 };
  const { rows, inner, a, b } = instruction;
  const shape = { m: rows, n: columns, k: inner, instructionLength: inner, aFormat: a, bFormat: b };
  for (const { a, b, c, d } of executions) {
    const product = { ...shape, a, bTransposed: b, c };
    compare(comparison, tensorCoreProduct(arithmeticOf(instruction), product), d);
  }
  return comparison;
}

/** Executes an instruction by tiles, B in either order. */
export function compareTiles(
  instruction: CapturedInstruction,
  executions: readonly Execution[],
): Comparison {
  const comparison = { compared: 0, different: 0 };
  const { rows, inner } = instruction;
  const tile = createTensorCoreTile(arithmeticOf(instruction), {
    rows,
    columns,
    inner,
    aFormat: instruction.a,
    bFormat: instruction.b,
    instructionLength: inner,
  });
  for (const { a, b, c, d } of executions) {
    tile.a.set(a);
    tile.packA();
    for (const transposed of [true, false]) {
      if (transposed) {
        tile.b.set(b);
        tile.packTransposedB();
      } else {
        tile.b.set(b.map((_, i) => b[(i % columns) * inner + Math.floor(i / columns)]));
        tile.packB();
      }
      tile.cBits.set(c);
      tile.multiplyAccumulate();
      compare(comparison, tile.cBits, d);
    }
  }
  return comparison;
}
