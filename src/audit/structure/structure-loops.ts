import { instantiator } from '../../reuse.js';
import { binary } from './structure.generated.js';

/** Exports of the WebAssembly module of the structure tests; addresses are of its memory. Its sources document them. */
export interface StructureLoops {
  readonly memory: WebAssembly.Memory;
  product(a: number, b: number, c: number, rows: number, inner: number, columns: number): void;
  makeInstruments(rows: number): void;
  measureRows(elements: number, rows: number): void;
  projectRow(elements: number, row: number, accumulated: number): number;
  addErrors(groups: number, rows: number, keys: number, count: number): number;
  surveyWeights(all: number, rows: number, keys: number, firstKey: number): void;
  movePool(
    row: number,
    capacity: number,
    slots: number,
    groups: number,
    sums: number,
    squares: number,
  ): void;
  clearRow(row: number, equalBytes: number): void;
  addWeights(row: number, weights: number, keys: number, from: number, parameters: number): number;
  summarise(row: number): void;
}

/** Makes an instance with a memory of its own. */
export const instantiateLoops = instantiator<StructureLoops>(binary, 'the structure tests');
