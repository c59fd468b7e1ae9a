import { RequestError } from '../../../../src/request-error.js';
import { warpRows } from '../../../online-softmax/units.js';
import type { TileSetting } from '../../recipe.js';
import {
  weightWords,
  type FragmentRegisters,
  type SoftmaxRegisters,
  type VisibleColumns,
} from './row-arithmetic.js';

/** Registers [part][lane][register] as rows [lane][part · register], in `rows`. */
export function gatherRows(parts: Uint32Array, registers: number, rows: Uint32Array): void {
  const columns = rows.length / warpRows;
  if (registers === columns) rows.set(parts);
  else
    for (let from = 0, first = 0; first < columns; first += registers)
      for (let at = first; at < rows.length; at += columns)
        for (let j = 0; j < registers; j++) rows[at + j] = parts[from++];
}

/** Rows [lane][part · register] as registers [part][lane][register], in `parts`. */
export function scatterRows(rows: Uint32Array, registers: number, parts: Uint32Array): void {
  const columns = rows.length / warpRows;
  if (registers === columns) parts.set(rows);
  else
    for (let to = 0, first = 0; first < columns; first += registers)
      for (let at = first; at < rows.length; at += columns)
        for (let j = 0; j < registers; j++) parts[to++] = rows[at + j];
}

/**
 * The parts of scores and weights with their defaults: one each, of all registers.
 * @throws RequestError for parts that do not make up a row
 */
export function fragmentRegisters(
  { configuration, format }: TileSetting,
  { scores, weights }: Partial<FragmentRegisters> = {},
): FragmentRegisters {
  const partOf = (name: string, part: number | undefined, row: number): number => {
    if (part === undefined) return row;
    if (!(Number.isInteger(part) && part >= 1 && row % part === 0))
      throw new RequestError(
        `${part} registers of ${name} in a part; a row has ${row}: give a divisor of it`,
      );
    return part;
  };
  return {
    scores: partOf('scores', scores, configuration.blockKeys),
    weights: partOf('weights', weights, weightWords(configuration, format)),
  };
}

/** @throws RequestError unless the registers hold `length` words */
export function checkRegisters(
  name: string,
  registers: { readonly length: number },
  length: number,
): void {
  if (registers.length !== length)
    throw new RequestError(
      `${registers.length} registers of ${name} for a warp; give ${length}, ${length / warpRows} for each lane`,
    );
}

/** @throws RequestError for registers of a softmax step of other sizes than the block's */
export function checkSoftmaxRegisters(
  registers: SoftmaxRegisters,
  visible: VisibleColumns | null,
  { configuration, format }: TileSetting,
): void {
  checkRegisters('maxima', registers.maxima, warpRows);
  checkRegisters('sums', registers.sums, warpRows);
  checkRegisters('alphas', registers.alphas, warpRows);
  checkRegisters('scores', registers.scores, warpRows * configuration.blockKeys);
  checkRegisters('weights', registers.weights, warpRows * weightWords(configuration, format));
  if (visible === null) return;
  if (visible.begin !== null) checkRegisters('visible.begin', visible.begin, warpRows);
  checkRegisters('visible.end', visible.end, warpRows);
}

/**
 * The columns of [32][columns] registers.
 * @throws RequestError unless they are an even number from 2 on
 */
export function pairedColumns(name: string, { length }: Uint32Array): number {
  const columns = length / warpRows;
  if (!(Number.isInteger(columns) && columns >= 2 && columns % 2 === 0))
    throw new RequestError(
      `${length} registers of ${name} for a warp; give 32 lanes an even number each`,
    );
  return columns;
}
