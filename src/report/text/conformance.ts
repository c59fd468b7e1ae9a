import { formatGrouped, formatGroupedCount } from '../../words/index.js';
import { layoutColumns } from '../layout/index.js';
import { decode, formats } from '../../formats/index.js';
import type {
  CaptureSource,
  Conformance,
  InputRange,
  InstructionConformance,
  ResultMismatch,
} from '../../conform/index.js';

const columns = ['instruction', 'inputs checked', 'mismatching', 'single results'] as const;

function describeSource({ folder, gpu, capability, driver, captured }: CaptureSource): string {
  if (gpu === null) return `unknown GPU: ${folder} has no capture.json that names it`;
  return [
    capability === null ? gpu : `${gpu} (${capability})`,
    ...(driver === null ? [] : [`driver ${driver}`]),
    ...(captured === null ? [] : [`captured ${captured}`]),
  ].join(', ');
}

function bits(pattern: number, width = 8): string {
  return `0x${pattern.toString(16).padStart(width, '0')}`;
}

function describeRange({ block, first, last }: InputRange): string {
  const value = (pattern: number): number => decode(formats.fp32, pattern);
  return `block ${block}, inputs ${bits(first)} to ${bits(last)} (${value(first)} to ${value(last)})`;
}

/** The verdict in one sentence. */
export function conformanceSentence({ pass, exhaustive, instructions }: Conformance): string {
  const models = formatGroupedCount(instructions.length, 'model');
  if (!pass) {
    const failing = instructions.filter(({ pass }) => !pass).length;
    return `FAIL: ${failing} of ${models} ${failing === 1 ? 'differs' : 'differ'} from the silicon.`;
  }
  const agree = instructions.length === 1 ? 'agrees' : 'agree';
  const wholly = exhaustive || instructions.every(({ inputBits }) => inputBits === 16);
  const extent = wholly ? 'every input' : 'every block sampled';
  return `PASS: ${models} ${agree} with the silicon, bit for bit, on ${extent}.`;
}

function extentLine({ exhaustive, seed, instructions }: Conformance): string[] {
  const sampled = instructions.flatMap(({ blocksChecked }) => blocksChecked ?? []);
  if (exhaustive || sampled.length === 0) return [];
  return [
    `sample:  at least ${Math.min(...sampled)} of 4096 blocks of each function of 32 bits, seed ${seed}; --exhaustive checks them all`,
  ];
}

function missingLine({ notCaptured }: Conformance): string[] {
  return notCaptured.length === 0 ? [] : [`missing: no captures of ${notCaptured.join(', ')}`];
}

function describeMismatch({ input, silicon, model }: ResultMismatch, inputBits: 16 | 32): string {
  const result = `the silicon gives ${bits(silicon)}, the model ${bits(model)}`;
  if (inputBits === 16) return `input ${bits(input, 4)}: ${result}`;
  return `input ${bits(input)} (${decode(formats.fp32, input)}): ${result}`;
}

function mismatchLines(conformance: InstructionConformance): string[] {
  const { instruction, inputBits, firstMismatchingBlock: range, results } = conformance;
  const lines: string[] = [];
  if (range !== null) lines.push(`${instruction}: first mismatch in ${describeRange(range)}`);
  if (results.first !== null)
    lines.push(`${instruction}: first at ${describeMismatch(results.first, inputBits)}`);
  else if (range !== null)
    lines.push(
      `${instruction}: no single results there; capture the block's with capture.sh --block (fixtures/capture/scalar) to see the first input`,
    );
  return lines;
}

function row(conformance: InstructionConformance): string[] {
  const { instruction, inputBits, inputsChecked, mismatchingBlocks, results } = conformance;
  const { checked, mismatching } = results;
  if (inputBits === 16)
    return [instruction, formatGrouped(inputsChecked), formatGrouped(mismatching), ''];
  return [
    instruction,
    formatGrouped(inputsChecked),
    formatGroupedCount(mismatchingBlocks.length, 'block'),
    checked === 0 ? '' : `${formatGrouped(mismatching)} of ${formatGrouped(checked)}`,
  ];
}

/** The conformance as text: the verdict, a table, the first mismatches, the source of the data. */
export function renderConformance(conformance: Conformance): string {
  const { instructions, silicon } = conformance;
  const mismatches = instructions.flatMap(mismatchLines);
  return [
    conformanceSentence(conformance),
    '',
    ...layoutColumns([columns, ...instructions.map(row)], (column) =>
      column === 0 ? 'left' : 'right',
    ),
    '',
    ...mismatches,
    ...(mismatches.length > 0 ? [''] : []),
    `silicon: ${describeSource(silicon)}`,
    ...extentLine(conformance),
    ...missingLine(conformance),
    '',
  ].join('\n');
}
