import { decode, formats } from '../formats/index.js';
import type { Conformance, InputRange, InstructionConformance } from './conformance.js';
import type { CaptureSource } from './capture.js';

const columns = ['instruction', 'inputs checked', 'mismatching blocks'] as const;

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((_, c) => Math.max(...rows.map((row) => row[c].length)));
  return rows.map((row) =>
    row.map((cell, c) => (c === 0 ? cell.padEnd(widths[c]) : cell.padStart(widths[c]))).join('  '),
  );
}

function describeSource({ folder, gpu, capability, driver, captured }: CaptureSource): string {
  if (gpu === null) return `unknown GPU: ${folder} has no capture.json that names it`;
  return [
    capability === null ? gpu : `${gpu} (${capability})`,
    ...(driver === null ? [] : [`driver ${driver}`]),
    ...(captured === null ? [] : [`captured ${captured}`]),
  ].join(', ');
}

function describeRange({ block, first, last }: InputRange): string {
  const bits = (pattern: number): string => `0x${pattern.toString(16).padStart(8, '0')}`;
  const value = (pattern: number): number => decode(formats.fp32, pattern);
  return `block ${block}, inputs ${bits(first)} to ${bits(last)} (${value(first)} to ${value(last)})`;
}

/** The verdict in one sentence. */
export function conformanceSentence({ pass, exhaustive, instructions }: Conformance): string {
  const models = counted(instructions.length, 'conversion');
  if (!pass) {
    const failing = instructions.filter(({ firstMismatch }) => firstMismatch !== null);
    return `FAIL: ${failing.length} of ${models} ${failing.length === 1 ? 'differs' : 'differ'} from the silicon.`;
  }
  const agree = instructions.length === 1 ? 'agrees' : 'agree';
  const extent = exhaustive ? 'all 2^32 inputs' : 'every block sampled';
  return `PASS: ${models} ${agree} with the silicon, bit for bit, on ${extent}.`;
}

function extentLine({ exhaustive, seed, instructions }: Conformance): string[] {
  if (exhaustive) return [];
  const fewest = Math.min(...instructions.map(({ blocksChecked }) => blocksChecked));
  return [
    `sample:  at least ${fewest} of 4096 blocks each, seed ${seed}; --exhaustive checks them all`,
  ];
}

function mismatchLine({ instruction, firstMismatch }: InstructionConformance): string[] {
  if (firstMismatch === null) return [];
  return [`${instruction}: first mismatch in ${describeRange(firstMismatch)}`];
}

/** The conformance as text: the verdict, a table, the first mismatches, the source of the data. */
export function renderConformance(conformance: Conformance): string {
  const { instructions, silicon } = conformance;
  const rows = instructions.map(({ instruction, inputsChecked, mismatchingBlocks }) => [
    instruction,
    grouped(inputsChecked),
    grouped(mismatchingBlocks.length),
  ]);
  const mismatches = instructions.flatMap(mismatchLine);
  return [
    conformanceSentence(conformance),
    '',
    ...table([columns, ...rows]),
    '',
    ...mismatches,
    ...(mismatches.length > 0 ? [''] : []),
    `silicon: ${describeSource(silicon)}`,
    ...extentLine(conformance),
    '',
  ].join('\n');
}
