import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { decode, encode, formats, round } from '../../../src/formats/index.js';
import { findTensorCoreArithmetic } from '../../../src/hardware/index.js';
import type {
  AccumulatorFormat,
  OperandFormatName,
  TensorCoreArithmetic,
} from '../../../src/hardware/index.js';
import { edgeOperands } from './edge-operands.js';
import type { EdgeOperands } from './edge-operands.js';

const folder = new URL('../../../fixtures/silicon/', import.meta.url);

/** An instruction of which results were captured on an H200. */
export interface CapturedInstruction {
  readonly name: string;
  readonly a: Exclude<OperandFormatName, 'e2m3' | 'e3m2' | 'e2m1'>;
  readonly b: CapturedInstruction['a'];
  readonly accumulator: AccumulatorFormat;
  readonly rows: number;
  readonly inner: number;
  readonly resultFractionBits: number;
  /** Of A, B, C and D, one after the other. */
  readonly sha256: string;
}

/** Bit patterns of one execution: A [rows][inner], B [8][inner], C and D [rows][8]. */
export interface Execution extends EdgeOperands {
  readonly d: Uint32Array;
}

export const columns = 8;
const regimes = 8;
const executions = 128;

function json<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, folder), 'utf8')) as T;
}

function instructionsOf(description: string): CapturedInstruction[] {
  return json<{ instructions: CapturedInstruction[] }>(`sm_90/mma/${description}.json`)
    .instructions;
}

export const capturedInstructions = instructionsOf('capture');
export const edgeInstructions = instructionsOf('edges');

export function arithmeticOf({
  name,
  a,
  b,
  accumulator,
}: CapturedInstruction): TensorCoreArithmetic {
  const instruction = name.startsWith('wgmma') ? 'wgmma' : 'mma.sync';
  return findTensorCoreArithmetic({ instruction, architecture: 'sm_90', a, b, accumulator });
}

function bytesOf(format: keyof typeof formats): number {
  return formats[format].storageBits / 8;
}

/** Reads a section of byte planes and says where the next one begins. */
function readPlanes(bytes: Uint8Array, start: number, count: number, width: number) {
  const words = new Uint32Array(count);
  for (let plane = width - 1; plane >= 0; plane--)
    for (let i = 0; i < count; i++) words[i] = words[i] * 256 + bytes[start + plane * count + i];
  return { words, end: start + count * width };
}

/** From the order of regimes to that of executions. */
function inOrder(words: Uint32Array): Uint32Array {
  const perExecution = words.length / executions;
  const ordered = new Uint32Array(words.length);
  for (let packed = 0; packed < executions; packed++) {
    const perRegime = executions / regimes;
    const execution = (packed % perRegime) * regimes + Math.floor(packed / perRegime);
    const part = words.subarray(packed * perExecution, (packed + 1) * perExecution);
    ordered.set(part, execution * perExecution);
  }
  return ordered;
}

function signFirst(words: Uint32Array, width: number): Uint32Array {
  return words.map((word) => Math.floor(word / 2) + (word % 2) * 2 ** (8 * width - 1));
}

function fromZigzag(word: number): number {
  return (word >>> 1) ^ -(word & 1);
}

/** The fp64 sum's bit pattern that captured results are stored as differences from. */
function truncate(value: number, accumulator: AccumulatorFormat, fractionBits: number): number {
  const format = formats[accumulator];
  if (Math.abs(value) >= 2 ** (format.maxExponent + 1))
    return encode(format, value < 0 ? -Infinity : Infinity);
  const short = { ...format, precision: fractionBits + 1 };
  const bits = encode(format, round(short, value, { rounding: 'toward-zero' }));
  return bits === 2 ** (format.storageBits - 1) ? 0 : bits;
}

function restoreResults(
  instruction: CapturedInstruction,
  { a, b, c }: EdgeOperands,
  differences: Uint32Array,
): Uint32Array {
  const { rows, inner, accumulator, resultFractionBits } = instruction;
  const values = (name: CapturedInstruction['a'], patterns: Uint32Array) =>
    Float64Array.from(patterns, (bits) => decode(formats[name], bits));
  const [left, right] = [values(instruction.a, a), values(instruction.b, b)];
  const patternMask = 2 ** formats[accumulator].storageBits - 1;
  const unit = 2 ** (formats[accumulator].precision - 1 - resultFractionBits);
  return differences.map((difference, i) => {
    const row = Math.floor(i / columns);
    const column = Math.floor(row / rows) * columns + (i % columns);
    let sum = decode(formats[accumulator], c[i]);
    for (let k = 0; k < inner; k++) sum += left[row * inner + k] * right[column * inner + k];
    const near = truncate(sum, accumulator, resultFractionBits);
    return (near + fromZigzag(difference) * unit) & patternMask;
  });
}

/** Throws unless these are the bytes that came from the device. */
function checkSum(instruction: CapturedInstruction, { a, b, c, d }: Execution): void {
  const hash = createHash('sha256');
  const { accumulator } = instruction;
  const widths = [instruction.a, instruction.b, accumulator, accumulator].map(bytesOf);
  [a, b, c, d].forEach((words, i) => {
    const narrow = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[widths[i] as 1 | 2 | 4];
    hash.update(Buffer.from(new narrow(words).buffer));
  });
  const found = hash.digest('hex');
  if (found !== instruction.sha256)
    throw new Error(`${instruction.name} is not as captured: SHA-256 ${found}`);
}

function split(instruction: CapturedInstruction, { a, b, c, d }: Execution): Execution[] {
  const { rows, inner } = instruction;
  const part = (words: Uint32Array, size: number, i: number) =>
    words.subarray(i * size, (i + 1) * size);
  return Array.from({ length: a.length / (rows * inner) }, (_, i) => ({
    a: part(a, rows * inner, i),
    b: part(b, columns * inner, i),
    c: part(c, rows * columns, i),
    d: part(d, rows * columns, i),
  }));
}

function unpack(path: string): Uint8Array {
  return brotliDecompressSync(readFileSync(new URL(`sm_90/mma/${path}.bin.br`, folder)));
}

/** The 128 executions of an instruction of capture.json, its check sum verified. */
export function readCapture(instruction: CapturedInstruction): Execution[] {
  const { name, rows, inner, accumulator } = instruction;
  const bytes = unpack(name);
  let next = 0;
  const section = (elements: number, width: number): Uint32Array => {
    const { words, end } = readPlanes(bytes, next, elements * executions, width);
    next = end;
    return inOrder(words);
  };
  const operand = (elements: number, width: number) => signFirst(section(elements, width), width);
  const a = operand(rows * inner, bytesOf(instruction.a));
  const b = operand(columns * inner, bytesOf(instruction.b));
  const c = operand(rows * columns, bytesOf(accumulator));
  const differences = section(rows * columns, bytesOf(accumulator));
  const all = { a, b, c, d: restoreResults(instruction, { a, b, c }, differences) };
  checkSum(instruction, all);
  return split(instruction, all);
}

function concatenate(parts: readonly Uint32Array[]): Uint32Array {
  const whole = new Uint32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let next = 0;
  for (const part of parts) {
    whole.set(part, next);
    next += part.length;
  }
  return whole;
}

/** The operands of all executions of an instruction of edges.json as three arrays. */
export function allEdgeOperands(index: number): EdgeOperands {
  const drawn = edgeOperands(edgeInstructions[index], index);
  const all = (name: keyof EdgeOperands) => concatenate(drawn.map((operands) => operands[name]));
  return { a: all('a'), b: all('b'), c: all('c') };
}

/** Splits what {@link allEdgeOperands} gave, and the results, into executions. */
export function splitEdges(index: number, operands: EdgeOperands, d: Uint32Array): Execution[] {
  return split(edgeInstructions[index], { ...operands, d });
}

/** The executions of every instruction of edges.json, check sums verified. */
export function readEdges(): Execution[][] {
  const bytes = unpack('edges');
  let next = 0;
  return edgeInstructions.map((instruction, index) => {
    const operands = allEdgeOperands(index);
    const { words, end } = readPlanes(
      bytes,
      next,
      operands.c.length,
      bytesOf(instruction.accumulator),
    );
    next = end;
    const d = restoreResults(instruction, operands, words);
    checkSum(instruction, { ...operands, d });
    return splitEdges(index, operands, d);
  });
}

/** One published fused dot product. */
export interface PublishedWord {
  readonly name: string;
  readonly format: OperandFormatName;
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly c: number;
  readonly d: number;
}

const hexDigits: Readonly<Record<string, number>> = { tf32: 8, bf16: 8, f16: 4 };

/** The words of fixtures/silicon/sm_100; bf16 operands without the low half of their containers. */
export function publishedWords(): PublishedWord[] {
  const { words } = json<{ words: Record<'name' | 'format' | 'a' | 'b' | 'c' | 'd', string>[] }>(
    'sm_100/tcgen05_dot.json',
  );
  return words.map(({ name, format, a, b, c, d }) => {
    const digits = hexDigits[format] ?? 2;
    const operands = (text: string): number[] =>
      text.match(new RegExp(`.{${digits}}`, 'g'))!.map((word) => {
        const bits = parseInt(word, 16);
        return format === 'bf16' ? bits >>> 16 : bits;
      });
    return {
      name,
      format: (format === 'f16' ? 'fp16' : format) as OperandFormatName,
      a: operands(a),
      b: operands(b),
      c: parseInt(c, 16),
      d: parseInt(d, 16),
    };
  });
}
