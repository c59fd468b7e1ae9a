import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { fingerprints, modelResults, operandColumn, rowKernel, tuples } from './row-kernels.js';

/** Rows of one name are told apart by their registers. */
export function rowKey({ name, destinations, sources }: LaneInstruction): string {
  return `${name} ${destinations.join(',')}<${sources.join(',')}`;
}

/** Writes the kernels of rows and their operands for fixtures/capture/ptx/rows.py; how many it has written. */
export function writeRowKernels(
  folder: string,
  rows: readonly LaneInstruction[],
  target: string,
  version: string,
): number {
  mkdirSync(folder, { recursive: true });
  let count = 0;
  rows.forEach((row, number) => {
    const text = rowKernel(row, target, version);
    if (text === null) return;
    writeFileSync(join(folder, `${number}.ptx`), text);
    const columns = row.sources.map((_, position) =>
      Buffer.from(operandColumn(row, position).buffer),
    );
    writeFileSync(join(folder, `${number}.in`), Buffer.concat(columns));
    count++;
  });
  return count;
}

/** What a GPU gave for a row. */
export interface CapturedRow {
  readonly key: string;
  /** As `fingerprints` makes them, in base 64. */
  readonly marks: string;
}

/** Results of a GPU, and where the model gives others. */
export interface Sweep {
  readonly captured: readonly CapturedRow[];
  readonly refused: readonly { readonly key: string; readonly why: string }[];
  readonly differing: readonly {
    readonly key: string;
    readonly count: number;
    readonly examples: readonly string[];
  }[];
}

const mostExamples = 12;

function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}

/** Reads what rows.py wrote for the rows that `writeRowKernels` has written, and compares it with the model. */
export function readRowResults(folder: string, rows: readonly LaneInstruction[]): Sweep {
  const sweep = {
    captured: [] as CapturedRow[],
    refused: [] as Sweep['refused'][number][],
    differing: [] as Sweep['differing'][number][],
  };
  rows.forEach((row, number) => {
    const key = rowKey(row);
    const refusal = join(folder, `${number}.refused`);
    if (existsSync(refusal))
      sweep.refused.push({ key, why: readFileSync(refusal, 'utf8').slice(0, 300) });
    const path = join(folder, `${number}.out`);
    if (!existsSync(path)) return;
    const bytes = new Uint8Array(readFileSync(path));
    const silicon = new BigUint64Array(bytes.buffer, 0, row.destinations.length * tuples);
    const marks = fingerprints(silicon);
    sweep.captured.push({ key, marks: Buffer.from(marks.buffer).toString('base64') });
    const model = modelResults(row);
    const wrong = [...model.keys()].filter((i) => model[i] !== silicon[i]);
    if (wrong.length === 0) return;
    const columns = row.sources.map((_, position) => operandColumn(row, position));
    const examples = wrong
      .slice(0, mostExamples)
      .map(
        (i) =>
          `(${columns.map((column) => hex(column[i % tuples])).join(', ')}) = ${hex(silicon[i])}, model ${hex(model[i])}`,
      );
    sweep.differing.push({ key, count: wrong.length, examples });
  });
  return sweep;
}
